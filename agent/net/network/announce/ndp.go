package announce

import (
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Neighbour discovery is RFC 4861: messages of ICMPv6, with options of 8 bytes each or a multiple.
const (
	solicitation  = 135
	advertisement = 136

	ipv6HeaderBytes  = 40
	nextHeaderAt     = 6
	ndpBytes         = 24 // of both messages, without options
	optionBytes      = 8
	sourceLinkOption = 1
	targetLinkOption = 2
	hopLimit         = 255 // a router would have made it less

	solicitedFlag = 1 << 6
	overrideFlag  = 1 << 5
)

var (
	allNodes = netip.MustParseAddr("ff02::1")
	// solicitedNode is a group with the last three bytes of the address that is asked for.
	solicitedNode = netip.MustParseAddr("ff02::1:ff00:0")
)

// ndp is for IPv6.
type ndp struct{}

// listens reads what may be of neighbour discovery, and none of the other packets of the link.
func (ndp) listens() listening {
	return listening{unix.ETH_P_IPV6, []bpf.Instruction{
		bpf.LoadAbsolute{Off: etherHeaderBytes + nextHeaderAt, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.IPPROTO_ICMPV6, SkipTrue: 4},
		bpf.LoadAbsolute{Off: etherHeaderBytes + ipv6HeaderBytes, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: solicitation, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: advertisement, SkipTrue: 1},
		bpf.RetConstant{Val: frameBytesMax},
		bpf.RetConstant{},
	}}
}

// group is where machines ask for an address.
func (ndp) group(ip netip.Addr) netip.Addr {
	group, of := solicitedNode.As16(), ip.As16()
	copy(group[13:], of[13:])
	return netip.AddrFrom16(group)
}

func (ndp) parse(frame []byte) (heard, bool) {
	if len(frame) < etherHeaderBytes+ipv6HeaderBytes+ndpBytes || binary.BigEndian.Uint16(frame[12:]) != unix.ETH_P_IPV6 {
		return heard{}, false
	}
	packet := frame[etherHeaderBytes:]
	message := packet[ipv6HeaderBytes:]
	size := int(binary.BigEndian.Uint16(packet[4:])) // the frame may have been filled up
	if size < ndpBytes || size > len(message) {
		return heard{}, false
	}
	message = message[:size]
	from, to := netip.AddrFrom16([16]byte(packet[8:24])), netip.AddrFrom16([16]byte(packet[24:40]))
	icmp := packet[0]>>4 == 6 && packet[6] == unix.IPPROTO_ICMPV6 && packet[7] == hopLimit
	valid := icmp && message[1] == 0 && checksum(from, to, message) == 0
	target := netip.AddrFrom16([16]byte(message[8:24]))
	switch {
	case valid && message[0] == solicitation:
		return heard{sender: linkAddress(message, sourceLinkOption, frame), wants: target, by: from}, true
	case valid && message[0] == advertisement:
		return heard{sender: linkAddress(message, targetLinkOption, frame), has: target}, true
	}
	return heard{}, false
}

// linkAddress is what the message says in an option, and else from where the frame comes.
func linkAddress(message []byte, option byte, frame []byte) net.HardwareAddr {
	for options := message[ndpBytes:]; len(options) >= optionBytes && options[1] > 0; {
		if options[0] == option && options[1] == 1 {
			return net.HardwareAddr(options[2:optionBytes])
		}
		options = options[min(len(options), int(options[1])*optionBytes):]
	}
	return net.HardwareAddr(frame[6:12])
}

// announcement has others forget where the address was.
func (ndp) announcement(own self, ip netip.Addr) []byte {
	return own.advertise(ip, overrideFlag, allNodes, groupHardware(allNodes))
}

// reply answers all where the one who asks has no address yet: it wants this one.
func (n ndp) reply(own self, question heard) []byte {
	if question.by.IsUnspecified() {
		return n.announcement(own, question.wants)
	}
	return own.advertise(question.wants, overrideFlag|solicitedFlag, question.by, question.sender)
}

// groupHardware is the address of a group of IPv6 on Ethernet.
func groupHardware(group netip.Addr) net.HardwareAddr {
	bytes := group.As16()
	return append(net.HardwareAddr{0x33, 0x33}, bytes[12:]...)
}

// advertise says that the address is at this machine.
func (s self) advertise(ip netip.Addr, flags byte, to netip.Addr, hardware net.HardwareAddr) []byte {
	message := append([]byte{advertisement, 0, 0, 0, flags, 0, 0, 0}, ip.AsSlice()...)
	message = append(append(message, targetLinkOption, 1), s.hardware...)
	return s.send(message, to, hardware)
}

// send is the frame of a message of ICMPv6.
func (s self) send(message []byte, to netip.Addr, hardware net.HardwareAddr) []byte {
	frame := append(append(append([]byte{}, hardware...), s.hardware...), 0x86, 0xdd, 0x60, 0, 0, 0)
	frame = append(binary.BigEndian.AppendUint16(frame, uint16(len(message))), unix.IPPROTO_ICMPV6, hopLimit)
	frame = append(append(frame, s.ip.AsSlice()...), to.AsSlice()...)
	binary.BigEndian.PutUint16(message[2:], checksum(s.ip, to, message))
	return append(frame, message...)
}

// checksum is that of ICMPv6; it is 0 of a message that has it.
func checksum(from, to netip.Addr, message []byte) uint16 {
	data := append(from.AsSlice(), to.AsSlice()...)
	data = binary.BigEndian.AppendUint32(data, uint32(len(message)))
	data = append(append(data, 0, 0, 0, unix.IPPROTO_ICMPV6), message...)
	var sum uint32
	for i, b := range data {
		if i%2 == 0 {
			sum += uint32(b) << 8
		} else {
			sum += uint32(b)
		}
	}
	for sum>>16 > 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}
