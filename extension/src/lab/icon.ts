// The lens's icon: water rising in a spring (샘).
import { LabIcon } from "@jupyterlab/ui-components";

const SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24" viewBox="0 0 24 24">
  <g class="jp-icon3" fill="#616161">
    <path d="M12 2c2.7 3.5 4.5 5.9 4.5 8.2a4.5 4.5 0 0 1-9 0C7.500 7.900 9.300 5.500 12 2z"/>
    <path d="M3 16.500c3-1.700 6-1.700 9 0s6 1.700 9 0v2c-3 1.700-6 1.700-9 0s-6-1.700-9 0z"/>
    <path d="M5.500 20.200c2.200-1.100 4.300-1 6.500 0s4.300 1.100 6.500 0v1.800c-2.200 1.100-4.300 1-6.500 0
      s-4.300-1.100-6.500 0z"/>
  </g>
</svg>`;

export const lensIcon = new LabIcon({ name: "saem-lens:spring", svgstr: SVG });
