// Package seccomp compiles seccomp profiles to the BPF programs that the kernel runs.
//
// It owns nothing. The embedded runtime calls it when a container is created; it may call moby's profile definition and
// x/net's assembler. It promises: the filter judges this machine's native system calls only, and refuses those of
// other architectures with ENOSYS; a name the table does not know is left to the profile's default action. Tested by
// running the programs in x/net's interpreter.
package seccomp
