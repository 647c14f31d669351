package machines

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// bootSpec is what the first process of a machine is told.
type bootSpec struct {
	Hostname string
	// Addresses of the machine, ip/bits.
	Addresses []string
	// Gateway is the router to other segments; empty when there is none.
	Gateway string
	// DataDir and TrustDir of the host become /var/lib/setpoint and /etc/setpoint.
	DataDir, TrustDir string
	// LogDir of the host has one file for each command.
	LogDir string
	// Commands by name; they are started in any order and never again.
	Commands map[string][]string
	// Files of the machine by path, with their content; a machine that is bare has a /usr/local/bin of its own, too.
	Files map[string]string
	Bare  bool
}

// boot is the first process of a machine. It waits until the network card is plugged in, which the end of standard
// input says, then starts the commands, and reaps what loses its parent until it is killed.
func boot(text string) int {
	var spec bootSpec
	err := json.Unmarshal([]byte(text), &spec)
	if err == nil {
		_, err = io.Copy(io.Discard, os.Stdin)
	}
	if err == nil {
		err = errors.Join(spec.mount(), unix.Sethostname([]byte(spec.Hostname)), spec.network())
	}
	for name, command := range spec.Commands {
		if err == nil {
			err = spec.start(name, command)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, spec.Hostname+":", err)
		return 1
	}
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return 0 // all commands have ended
		}
	}
}

// mount gives the machine a /proc, /run, /etc, /var/lib and /var/log of its own.
func (s *bootSpec) mount() error {
	err := errors.Join(
		unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""),
		unix.Mount("proc", "/proc", "proc", 0, ""))
	own := []string{"/run", "/etc", "/var/lib", "/var/log"}
	if s.Bare {
		own = append(own, "/usr/local/bin")
	}
	for _, dir := range own {
		err = errors.Join(err, unix.Mount("machine", dir, "tmpfs", 0, "mode=755"))
	}
	// Any machine has this file, and pods with its network share it.
	err = errors.Join(err, os.WriteFile("/etc/hosts", []byte("127.0.0.1 localhost\n"), 0o644))
	for from, to := range map[string]string{s.DataDir: "/var/lib/setpoint", s.TrustDir: "/etc/setpoint"} {
		err = errors.Join(err, os.MkdirAll(to, 0o755), unix.Mount(from, to, "", unix.MS_BIND, ""))
	}
	for path, text := range s.Files {
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755))
	}
	return err
}

func loopbackUp() error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(loopback)
}

// network sets up what is plugged in.
func (s *bootSpec) network() error {
	card, err := netlink.LinkByName(cardName)
	if err != nil {
		return err
	}
	err = errors.Join(loopbackUp(), netlink.LinkSetUp(card))
	for _, text := range s.Addresses {
		address, parseErr := netlink.ParseAddr(text)
		if parseErr != nil {
			return parseErr
		}
		address.Flags = unix.IFA_F_NODAD // an address of IPv6 is there at once
		err = errors.Join(err, netlink.AddrAdd(card, address))
	}
	if s.Gateway == "" || err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(s.Gateway)})
}

func (s *bootSpec) start(name string, command []string) error {
	log, err := os.OpenFile(filepath.Join(s.LogDir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Env = log, log, []string{"PATH=" + os.Getenv("PATH")}
	return cmd.Start()
}
