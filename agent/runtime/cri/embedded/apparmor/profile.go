package apparmor

// DefaultProfile is the name of the profile that RuntimeDefault means.
const DefaultProfile = "setpoint-default"

// defaultText takes from a container what no container needs, in addition to what capabilities, masks and read-only mounts
// take: to mount, to signal and trace what is not in a container, and to write what is the host's in /proc and /sys. It includes
// no other file, so that the parser alone is enough.
const defaultText = `profile ` + DefaultProfile + ` flags=(attach_disconnected,mediate_deleted) {
  network,
  capability,
  file,
  umount,
  deny mount,

  signal (send, receive) peer=` + DefaultProfile + `,
  signal (receive) peer=unconfined,
  ptrace (trace, read, tracedby, readby) peer=` + DefaultProfile + `,

  deny /proc/{acpi,asound,bus,driver,fs,irq,scsi,tty}/** wl,
  deny /proc/{kcore,kmem,mem,sysrq-trigger} rwklx,
  # Below sys, the network's and the limits of messages, semaphores and shared memory are the pod's own.
  deny /proc/sys/[^kn]** wl,
  deny /proc/sys/kernel/[^ms]** wl,
  deny /proc/sys/kernel/m[^s]** wl,
  deny /proc/sys/kernel/s[^eh]** wl,
  deny /proc/sys/kernel/seccomp/** wl,

  deny /sys/[^f]*/** wl,
  deny /sys/f[^s]*/** wl,
  deny /sys/fs/[^c]*/** wl,
  deny /sys/firmware/** rwklx,
  deny /sys/devices/virtual/powercap/** rwklx,
  deny /sys/kernel/security/** rwklx,
}
`
