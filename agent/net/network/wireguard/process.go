package wireguard

import (
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"
)

// What the process inherits, after the standard streams.
const (
	readyFD = 3 + iota
	deviceFD
	controlFD
)

// ReexecMain is the device of this process, if it was started for that, and then ends it. In an ordinary process it
// returns at once. Call it before anything else in main.
func ReexecMain() {
	if len(os.Args) == 0 || os.Args[0] != processName {
		return
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve returns when the device is gone.
func serve() error {
	_ = os.WriteFile("/proc/self/comm", []byte(processName), 0) // for ps; a kernel that refuses shows another name
	// Nobody with the same user reads the keys from its memory.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	control, err := net.FileListener(os.NewFile(controlFD, "control"))
	if err != nil {
		return err
	}
	link, name, err := tun.CreateUnmonitoredTUNFromFD(deviceFD)
	if err != nil {
		return err
	}
	d := device.NewDevice(link, conn.NewDefaultBind(), logger(name))
	if err := d.Up(); err != nil {
		return err
	}
	go answerAll(control, d)
	ready := os.NewFile(readyFD, "ready")
	if _, err := ready.Write([]byte{1}); err != nil {
		return err
	}
	ready.Close()
	<-d.Wait()
	return nil
}

// logBytesMax is how long the log gets: while a node is away each try to reach it is a line.
const logBytesMax = 64 << 10

// logger begins the log again when it is too long.
func logger(name string) *device.Logger {
	var mu sync.Mutex
	var written int
	return &device.Logger{Verbosef: device.DiscardLogf, Errorf: func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		if written > logBytesMax && os.Stderr.Truncate(0) == nil {
			written = 0
		}
		n, _ := fmt.Fprintf(os.Stderr, time.Now().UTC().Format(time.RFC3339)+" "+name+": "+format+"\n", args...) // nobody else to tell
		written += n
	}}
}

func answerAll(control net.Listener, d *device.Device) {
	for {
		c, err := control.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		go d.IpcHandle(c)
	}
}
