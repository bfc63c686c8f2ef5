package sys

const fdDir = "/proc/self/fd"
