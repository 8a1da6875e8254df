package at

import "syscall"

const sysFstatat = syscall.SYS_NEWFSTATAT
