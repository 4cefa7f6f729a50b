"""How a program is told what to do in a terminal, and what people see there."""
