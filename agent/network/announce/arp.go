package announce

import (
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

const (
	arpRequest = 1
	arpReply   = 2

	etherHeaderBytes = 14
	arpBytes         = 28
	hardwareBytes    = 6
	addressBytes     = 4
	ethernet         = 1
)

var broadcast = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// arp is what a frame of ARP for IPv4 on Ethernet says.
type arp struct {
	operation          uint16
	sender             net.HardwareAddr
	senderIP, targetIP netip.Addr
}

// parseARP reads a frame from the link; anybody may have sent it.
func parseARP(frame []byte) (arp, bool) {
	if len(frame) < etherHeaderBytes+arpBytes || binary.BigEndian.Uint16(frame[12:]) != unix.ETH_P_ARP {
		return arp{}, false
	}
	p := frame[etherHeaderBytes:]
	kinds := binary.BigEndian.Uint16(p) == ethernet && binary.BigEndian.Uint16(p[2:]) == unix.ETH_P_IP
	if !kinds || p[4] != hardwareBytes || p[5] != addressBytes {
		return arp{}, false
	}
	return arp{
		operation: binary.BigEndian.Uint16(p[6:]), sender: net.HardwareAddr(p[8:14]),
		senderIP: netip.AddrFrom4([4]byte(p[14:18])), targetIP: netip.AddrFrom4([4]byte(p[24:28])),
	}, true
}

// arpFrame says from a machine to another, or to all, who has an address or that we have it.
func arpFrame(operation uint16, sender net.HardwareAddr, senderIP netip.Addr, target net.HardwareAddr, targetIP netip.Addr) []byte {
	frame := append(append([]byte{}, target...), sender...)
	frame = binary.BigEndian.AppendUint16(frame, unix.ETH_P_ARP)
	frame = binary.BigEndian.AppendUint16(frame, ethernet)
	frame = binary.BigEndian.AppendUint16(frame, unix.ETH_P_IP)
	frame = append(frame, hardwareBytes, addressBytes)
	frame = binary.BigEndian.AppendUint16(frame, operation)
	frame = append(append(frame, sender...), senderIP.AsSlice()...)
	return append(append(frame, target...), targetIP.AsSlice()...)
}
