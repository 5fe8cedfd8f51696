// The lens's icon: water rising in a spring (샘).
import { LabIcon } from "@jupyterlab/ui-components";

const SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24"
  viewBox="0 0 24 24">
  <g class="jp-icon3" fill="#616161">
    <path d="M12 2c2.7 3.5 4.5 5.9 4.5 8.2a4.5 4.5 0 0 1-9 0C7.5 7.9 9.3 5.5 12 2z"/>
    <path d="M3 16.5c3-1.7 6-1.7 9 0s6 1.7 9 0v2c-3 1.7-6 1.7-9 0s-6-1.7-9 0z"/>
    <path d="M5.5 20.2c2.2-1.1 4.3-1 6.5 0s4.3 1.1 6.5 0v1.8
      c-2.2 1.1-4.3 1-6.5 0s-4.3-1.1-6.5 0z"/>
  </g>
</svg>`;

export const lensIcon = new LabIcon({ name: "saem-lens:spring", svgstr: SVG });
