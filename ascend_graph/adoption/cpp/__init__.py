"""C++ sources that define operators: functions, their bodies as syntax trees, registrations."""
