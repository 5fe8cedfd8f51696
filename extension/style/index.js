import "./saem.css";
import "./lab.css";
