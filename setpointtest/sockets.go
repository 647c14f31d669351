package setpointtest

import (
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The states of a TCP connection that are looked for, as /proc/net/tcp has them.
const (
	tcpEstablished = "01"
	tcpListening   = "0A"
)

// addresses says at which addresses this process listens, or to which it is connected. Linux alone tells; elsewhere it is "".
func addresses(listening bool) string {
	owned := ownSockets()
	state, field, verb := tcpEstablished, 2, "connected to"
	if listening {
		state, field, verb = tcpListening, 1, "listening at"
	}
	var found []string
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) > 9 && fields[3] == state && owned[fields[9]] {
				found = append(found, socketAddress(fields[field]))
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	slices.Sort(found)
	return fmt.Sprintf(" (the process is %s %s)", verb, strings.Join(slices.Compact(found), ", "))
}

// ownSockets are the inodes of the sockets of this process.
func ownSockets() map[string]bool {
	owned := map[string]bool{}
	files, _ := filepath.Glob("/proc/self/fd/*")
	for _, file := range files {
		target, err := os.Readlink(file)
		if inode, is := strings.CutPrefix(target, "socket:["); err == nil && is {
			owned[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return owned
}

// socketAddress reads 0100007F:1F90: an address in words of four bytes, each with the last byte first, and a port.
func socketAddress(text string) string {
	address, port, _ := strings.Cut(text, ":")
	ip, err := hex.DecodeString(address)
	number, portErr := strconv.ParseUint(port, 16, 16)
	if err != nil || portErr != nil {
		return text
	}
	for word := range slices.Chunk(ip, 4) {
		slices.Reverse(word)
	}
	if net.IP(ip).IsUnspecified() {
		return fmt.Sprintf(":%d", number)
	}
	return net.JoinHostPort(net.IP(ip).String(), fmt.Sprint(number))
}
