package embedded

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// workload is the program inside the tests' containers.
func workload(args []string) int {
	switch args[0] {
	case "say": // say CODE LINE...
		for _, line := range args[2:] {
			fmt.Println(line)
		}
		code, _ := strconv.Atoi(args[1])
		return code
	case "sleep":
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		fmt.Println("sleeping")
		<-signals
		fmt.Println("terminated")
		return 7
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("stubborn")
		time.Sleep(time.Hour)
		return 0
	case "tick":
		for i := 0; ; i++ {
			fmt.Println("tick", i)
			time.Sleep(5 * time.Millisecond)
		}
	case "eat":
		var hoard [][]byte
		for {
			block := make([]byte, 1<<20)
			for i := range block {
				block[i] = byte(i)
			}
			hoard = append(hoard, block)
			if len(hoard) > 1000 {
				return 0
			}
		}
	case "cat":
		_, _ = io.Copy(os.Stdout, os.Stdin)
		return 0
	case "echo-server":
		return echoServer(args[1])
	case "look":
		return look(args[1:])
	case "wait-size": // wait-size WxH: prints its terminal once that has the size
		for lookAt("tty", "") != args[1] {
			time.Sleep(time.Millisecond)
		}
		name, _ := os.Readlink("/proc/self/fd/0")
		fmt.Println(name, args[1])
		return 0
	}
	return 99
}

func echoServer(address string) int {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("listening")
	for {
		conn, err := listener.Accept()
		if err != nil {
			return 1
		}
		go func() { _, _ = io.Copy(conn, conn); conn.Close() }()
	}
}

// look prints one fact per argument.
func look(what []string) int {
	for _, fact := range what {
		key, value, _ := strings.Cut(fact, "=")
		fmt.Printf("%s: %s\n", fact, lookAt(key, value))
	}
	return 0
}

func lookAt(key, value string) string {
	switch key {
	case "read":
		data, err := os.ReadFile(value)
		if err != nil {
			return err.Error()
		}
		return strings.TrimSpace(string(data))
	case "write":
		return fmt.Sprint(os.WriteFile(value, []byte("x"), 0o644))
	case "owner":
		var stat unix.Stat_t
		if err := unix.Lstat(value, &stat); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%d:%d", stat.Uid, stat.Gid)
	case "uid":
		groups, _ := os.Getgroups()
		return fmt.Sprint(os.Getuid(), os.Getgid(), groups)
	case "suicide":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "env":
		return os.Getenv(value)
	case "cwd":
		dir, _ := os.Getwd()
		return dir
	case "hostname":
		name, _ := os.Hostname()
		return name
	case "pid":
		return fmt.Sprint(os.Getpid())
	case "tty":
		size, err := unix.IoctlGetWinsize(1, unix.TIOCGWINSZ)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(size.Col, "x", size.Row)
	case "status":
		data, _ := os.ReadFile("/proc/self/status")
		for line := range strings.Lines(string(data)) {
			if name, rest, _ := strings.Cut(line, ":"); name == value {
				return strings.TrimSpace(rest)
			}
		}
		return "?"
	case "mount":
		return fmt.Sprint(unix.Mount("tmpfs", "/dev/shm", "tmpfs", 0, ""))
	case "unshare":
		return fmt.Sprint(exec.Command("/proc/self/exe").Process == nil, unix.Unshare(unix.CLONE_NEWUSER))
	case "list":
		entries, err := os.ReadDir(value)
		if err != nil {
			return err.Error()
		}
		var names []string
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		return strings.Join(names, " ")
	}
	return "unknown fact"
}
