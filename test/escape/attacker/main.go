// Command attacker is all that the image of an attacking pod holds. Each argument is one step, a command with its
// arguments; the program prints one line for each, what it read or how it failed, and goes on with the next.
package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	runtime.LockOSThread() // a keyring belongs to a thread
	for _, step := range os.Args[1:] {
		words := strings.Fields(step)
		answer, err := "", error(fmt.Errorf("no such step"))
		if do := steps[words[0]]; do != nil {
			answer, err = do(append(words[1:], "", "", "", ""))
		}
		switch {
		case err != nil:
			answer = err.Error()
		case answer == "":
			answer = "ok"
		}
		fmt.Printf("%s: %s\n", step, answer)
	}
}

// readBytesMax is how much of a file a step prints.
const readBytesMax = 4096

// steps are what a page can ask for; missing arguments are empty.
var steps = map[string]func(args []string) (string, error){
	"read": func(args []string) (string, error) { return read(args[0]) },
	// write FILE TEXT, into what is there
	"write": func(args []string) (string, error) {
		file, err := os.OpenFile(args[0], os.O_WRONLY, 0)
		if err != nil {
			return "", err
		}
		defer file.Close()
		_, err = file.WriteString(args[1])
		return "", err
	},
	// create FILE TEXT; a \n in the text is a line's end
	"create": func(args []string) (string, error) {
		return "", os.WriteFile(args[0], []byte(strings.ReplaceAll(args[1], `\n`, "\n")), 0o644)
	},
	"list": func(args []string) (string, error) {
		entries, err := os.ReadDir(args[0])
		var names []string
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		return strings.Join(names, " "), err
	},
	// mknod FILE b|c MAJOR MINOR
	"mknod": func(args []string) (string, error) {
		major, err := strconv.ParseUint(args[2], 10, 32)
		if err != nil {
			return "", err
		}
		minor, err := strconv.ParseUint(args[3], 10, 32)
		if err != nil {
			return "", err
		}
		kind := map[string]uint32{"b": unix.S_IFBLK, "c": unix.S_IFCHR}[args[1]]
		return "", unix.Mknod(args[0], kind|0o666, int(unix.Mkdev(uint32(major), uint32(minor))))
	},
	// mount TYPE FOLDER
	"mount":   func(args []string) (string, error) { return "", unix.Mount(args[0], args[1], args[0], 0, "") },
	"mkfifo":  func(args []string) (string, error) { return "", unix.Mkfifo(args[0], 0o666) },
	"symlink": func(args []string) (string, error) { return "", os.Symlink(args[0], args[1]) },
	"mkdir":   func(args []string) (string, error) { return "", os.Mkdir(args[0], 0o777) },
	"remove":  func(args []string) (string, error) { return "", os.Remove(args[0]) },
	// chmod FILE MODE
	"chmod": func(args []string) (string, error) {
		mode, err := strconv.ParseUint(args[1], 8, 32)
		if err != nil {
			return "", err
		}
		return "", unix.Chmod(args[0], uint32(mode))
	},
	// fchmod DESCRIPTOR MODE
	"fchmod": func(args []string) (string, error) {
		fd, err := strconv.Atoi(args[0])
		if err != nil {
			return "", err
		}
		mode, err := strconv.ParseUint(args[1], 8, 32)
		if err != nil {
			return "", err
		}
		return "", unix.Fchmod(fd, uint32(mode))
	},
	// swap FILE FILE: exchange them again and again, until SIGTERM
	"swap": func(args []string) (string, error) { return "", swap(args[0], args[1]) },
	// overwrite: change every program that runs here and is not this one
	"overwrite": func([]string) (string, error) { return overwrite() },
	// cwd: where this process is, and what is there
	"cwd": func([]string) (string, error) { return workingDirectory() },
	// abstract: connect to every abstract socket of the network namespace
	"abstract": func([]string) (string, error) { return abstractSockets() },
	// advertise: "I am your router"
	"advertise": func([]string) (string, error) { return "", advertise() },
	// claim ADDRESS, of IPv4: it is here
	"claim": func(args []string) (string, error) { return "", claim(args[0]) },
	// spoof ADDRESS, of IPv4: an echo request from there; without one from this pod
	"spoof": func(args []string) (string, error) { return "", spoof(args[0]) },
	// shout at all neighbours that the page's pods may be, past the host
	"shout": func([]string) (string, error) { return "", shout() },
	// hear what is shouted, until SIGTERM
	"hear": func([]string) (string, error) { return "", hear() },
	// copy FILE FILE
	"copy": func(args []string) (string, error) {
		content, err := os.ReadFile(args[0])
		if err != nil {
			return "", err
		}
		return "", os.WriteFile(args[1], content, 0o755)
	},
	// run FILE STEP: what it says
	"run": func(args []string) (string, error) {
		said, err := exec.Command(args[0], strings.TrimSpace(strings.Join(args[1:], " "))).CombinedOutput()
		return strings.TrimSpace(string(said)), err
	},
	// hunt FILE: look for it below every process's root, again and again
	"hunt": func(args []string) (string, error) {
		found := map[string]bool{}
		for end := time.Now().Add(huntTime); time.Now().Before(end); {
			roots, err := filepath.Glob("/proc/[0-9]*/root" + args[0])
			if err != nil {
				return "", err
			}
			for _, root := range roots {
				found[root] = true
			}
		}
		if len(found) == 0 {
			return "none", nil
		}
		return fmt.Sprint(found), nil
	},
	// capabilities PID: its permitted set
	"capabilities": func(args []string) (string, error) {
		status, err := os.ReadFile("/proc/" + args[0] + "/status")
		for line := range strings.Lines(string(status)) {
			if set, ok := strings.CutPrefix(line, "CapPrm:"); ok {
				return strings.TrimSpace(set), nil
			}
		}
		return "", err
	},
	// descriptors that this process was given, beside the standard streams
	"descriptors": func([]string) (string, error) { return given(), nil },
	// keep TEXT in the session keyring, and the keyring's number in FILE
	"keep": func(args []string) (string, error) {
		if _, err := unix.AddKey("user", "secret", []byte(args[0]), unix.KEY_SPEC_SESSION_KEYRING); err != nil {
			return "", err
		}
		number, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false)
		if err != nil {
			return "", err
		}
		return "", os.WriteFile(args[1], []byte(strconv.Itoa(number)), 0o644)
	},
	// find what was kept
	"find": func([]string) (string, error) {
		key, err := unix.KeyctlSearch(unix.KEY_SPEC_SESSION_KEYRING, "user", "secret", 0)
		if err != nil {
			return "", err
		}
		text := make([]byte, readBytesMax)
		n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, key, text, 0)
		return string(text[:max(n, 0)]), err
	},
	// link the keyring whose number is in FILE into the session keyring
	"link": func(args []string) (string, error) {
		text, err := os.ReadFile(args[0])
		if err != nil {
			return "", err
		}
		number, err := strconv.Atoi(string(text))
		if err != nil {
			return "", err
		}
		_, err = unix.KeyctlInt(unix.KEYCTL_LINK, number, unix.KEY_SPEC_SESSION_KEYRING, 0, 0)
		return "", err
	},
	// dial a port of TCP
	"dial": func(args []string) (string, error) {
		conn, err := net.DialTimeout("tcp", args[0], dialTimeMax)
		if err != nil {
			return "", err
		}
		return "", conn.Close()
	},
	"id": func([]string) (string, error) { return fmt.Sprintf("uid=%d gid=%d", os.Getuid(), os.Getgid()), nil },
	// threads N: a program that has as many
	"threads": func(args []string) (string, error) {
		said, err := exec.Command("/proc/self/exe", "hold "+args[0]).CombinedOutput()
		if strings.Contains(string(said), "failed to create new OS thread") {
			return "refused", nil
		}
		return "", err
	},
	// hold N threads at the same time
	"hold": func(args []string) (string, error) {
		n, err := strconv.Atoi(args[0])
		if err != nil {
			return "", err
		}
		var all sync.WaitGroup
		all.Add(n)
		for range n {
			go func() {
				runtime.LockOSThread()
				all.Done()
				all.Wait()
			}()
		}
		all.Wait()
		return "", nil
	},
	"effective": func([]string) (string, error) { return fmt.Sprintf("uid=%d", os.Geteuid()), nil },
	// wait until SIGTERM
	"wait": func([]string) (string, error) {
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, syscall.SIGTERM)
		fmt.Println("waiting")
		<-ended
		return "", nil
	},
}

// huntTime is long enough for other containers of the pod to start meanwhile.
const huntTime = time.Second

// dialTimeMax is longer than any answer takes.
const dialTimeMax = 10 * time.Second

// descriptorMax is where given stops looking.
const descriptorMax = 1024

// given lists open files that Go's runtime has not opened itself.
func given() string {
	var links []string
	for fd := 3; fd < descriptorMax; fd++ {
		link, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if err == nil && !strings.HasPrefix(link, "anon_inode:") && !strings.HasPrefix(link, "/sys/fs/cgroup/") {
			links = append(links, link)
		}
	}
	if len(links) == 0 {
		return "none"
	}
	return strings.Join(links, " ")
}

func read(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	content := make([]byte, readBytesMax)
	n, err := file.Read(content)
	if err != nil {
		return "", err
	}
	printable := slices.DeleteFunc(content[:n], func(b byte) bool { return b == 0 })
	return strings.TrimSpace(strings.ReplaceAll(string(printable), "\n", " ")), nil
}
