"""What everything else stands on: avals, primitives, the trace context, jaxprs, events."""
