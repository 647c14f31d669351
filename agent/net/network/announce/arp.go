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

// arp is for IPv4 on Ethernet.
type arp struct{}

func (arp) listens() listening { return listening{etherType: unix.ETH_P_ARP} }

// group is none: questions go to all.
func (arp) group(netip.Addr) netip.Addr { return netip.Addr{} }

// parse: who asks or answers says that it has its own address.
func (arp) parse(frame []byte) (heard, bool) {
	if len(frame) < etherHeaderBytes+arpBytes || binary.BigEndian.Uint16(frame[12:]) != unix.ETH_P_ARP {
		return heard{}, false
	}
	p := frame[etherHeaderBytes:]
	kinds := binary.BigEndian.Uint16(p) == ethernet && binary.BigEndian.Uint16(p[2:]) == unix.ETH_P_IP
	if !kinds || p[4] != hardwareBytes || p[5] != addressBytes {
		return heard{}, false
	}
	sender := netip.AddrFrom4([4]byte(p[14:18]))
	said := heard{sender: net.HardwareAddr(p[8:14]), has: sender, by: sender}
	if binary.BigEndian.Uint16(p[6:]) == arpRequest {
		said.wants = netip.AddrFrom4([4]byte(p[24:28]))
	}
	return said, true
}

func (arp) announcement(own self, ip netip.Addr) []byte {
	return arpFrame(arpRequest, own.hardware, ip, broadcast, ip)
}

func (arp) reply(own self, question heard) []byte {
	return arpFrame(arpReply, own.hardware, question.wants, question.sender, question.by)
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
