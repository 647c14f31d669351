package main

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

var broadcast = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// claim asks all for the host's address, as somebody who has another one than this pod: whoever hears it notes where that is.
func claim(address string) error {
	link, gateway, err := neighbourhood()
	if err != nil {
		return err
	}
	question := slices.Concat[[]byte]([]byte{0, 1, 8, 0, 6, 4, 0, 1}, link.HardwareAddr, net.ParseIP(address).To4(), make([]byte, 6), gateway)
	return sendFrame(link, broadcast, unix.ETH_P_ARP, question)
}

// spoof asks the host for an echo, in the name of another; "" is this pod's own.
func spoof(address string) error {
	link, gateway, err := neighbourhood()
	if err != nil {
		return err
	}
	host, err := hardwareOf(gateway)
	if err != nil {
		return err
	}
	from := net.ParseIP(address).To4()
	if address == "" {
		if from, err = ownAddress(link); err != nil {
			return err
		}
	}
	echo := []byte{8, 0, 0xf7, 0xff, 0, 0, 0, 0}
	header := slices.Concat[[]byte]([]byte{0x45, 0, 0, 28, 0, 0, 0, 0, 64, unix.IPPROTO_ICMP, 0, 0}, from, gateway)
	binary.BigEndian.PutUint16(header[10:], checksum(header))
	return sendFrame(link, host, unix.ETH_P_IP, append(header, echo...))
}

func ownAddress(link *net.Interface) (net.IP, error) {
	addresses, err := link.Addrs()
	if err != nil {
		return nil, err
	}
	for _, address := range addresses {
		if own := address.(*net.IPNet).IP.To4(); own != nil {
			return own, nil
		}
	}
	return nil, errors.New("no address of IPv4")
}

func checksum(header []byte) uint16 {
	var sum uint32
	for i := 0; i < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// neighbourhood is this pod's interface, and the host's address there.
func neighbourhood() (*net.Interface, net.IP, error) {
	link, err := net.InterfaceByName("eth0")
	if err != nil {
		return nil, nil, err
	}
	routes, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return nil, nil, err
	}
	for line := range strings.Lines(string(routes)) {
		fields := strings.Fields(line)
		if fields[1] != "00000000" {
			continue
		}
		gateway, err := hex.DecodeString(fields[2])
		slices.Reverse(gateway)
		return link, gateway, err
	}
	return nil, nil, errors.New("no default route")
}

// hardwareOf asks the kernel, which asks the neighbour if it has to.
func hardwareOf(address net.IP) (net.HardwareAddr, error) {
	conn, err := net.Dial("udp", net.JoinHostPort(address.String(), "9"))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if _, err := conn.Write(nil); err != nil {
		return nil, err
	}
	for end := time.Now().Add(addressTimeMax); time.Now().Before(end); time.Sleep(addressPoll) {
		table, err := os.ReadFile("/proc/net/arp")
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(table)) {
			if fields := strings.Fields(line); fields[0] == address.String() && fields[2] != "0x0" {
				return net.ParseMAC(fields[3])
			}
		}
	}
	return nil, fmt.Errorf("%s does not answer", address)
}

// shouted is a protocol that IEEE 802 leaves to experiments.
const shouted = 0x88b5

// neighboursMax is how many addresses are tried: a pod's hardware address has its own of IPv4.
const neighboursMax = 64

func shout() error {
	link, gateway, err := neighbourhood()
	if err != nil {
		return err
	}
	errs := sendFrame(link, broadcast, shouted, make([]byte, 46))
	for i := range neighboursMax {
		address := slices.Concat[[]byte](link.HardwareAddr[:2], gateway)
		address[5] += byte(i + 1)
		errs = errors.Join(errs, sendFrame(link, address, shouted, make([]byte, 46)))
	}
	return errs
}

func hear() error {
	link, _, err := neighbourhood()
	if err != nil {
		return err
	}
	conn, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(conn)
	wait := unix.NsecToTimeval(addressPoll.Nanoseconds())
	err = errors.Join(
		unix.SetsockoptTimeval(conn, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait),
		unix.Bind(conn, &unix.SockaddrLinklayer{Ifindex: link.Index, Protocol: networkOrder(shouted)}),
	)
	if err != nil {
		return err
	}
	untilTerminated(func() {
		frame := make([]byte, readBytesMax)
		if n, _, err := unix.Recvfrom(conn, frame, 0); err == nil {
			fmt.Printf("heard %x\n", frame[:min(n, 14)])
		}
	})
	return nil
}

// networkOrder has the bytes of a number the other way round, where the machine has.
func networkOrder(number uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, number))
}

func sendFrame(link *net.Interface, to net.HardwareAddr, protocol uint16, content []byte) error {
	conn, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(conn)
	frame := slices.Concat[[]byte](to, link.HardwareAddr, binary.BigEndian.AppendUint16(nil, protocol), content)
	return unix.Sendto(conn, frame, 0, &unix.SockaddrLinklayer{Ifindex: link.Index, Halen: uint8(len(to))})
}
