package network

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// generation is how often anybody has changed nftables in this network namespace.
func generation() (uint32, error) {
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return 0, fmt.Errorf("nftables: %w", err)
	}
	defer conn.Close()
	replies, err := conn.Execute(netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETGEN), Flags: netlink.Request},
		Data:   make([]byte, familyHeaderBytes),
	})
	if err != nil {
		return 0, fmt.Errorf("nftables: %w", err)
	}
	for _, reply := range replies {
		if id, ok := generationOf(reply); ok {
			return id, nil
		}
	}
	return 0, errNoGeneration
}

var errNoGeneration = errors.New("nftables tells no generation")

// familyHeaderBytes come before the attributes of each message of netfilter.
const familyHeaderBytes = 4

func generationOf(reply netlink.Message) (id uint32, ok bool) {
	if len(reply.Data) < familyHeaderBytes {
		return 0, false
	}
	attributes, err := netlink.NewAttributeDecoder(reply.Data[familyHeaderBytes:])
	if err != nil {
		return 0, false
	}
	attributes.ByteOrder = binary.BigEndian
	for attributes.Next() {
		if attributes.Type() == unix.NFTA_GEN_ID {
			id, ok = attributes.Uint32(), true
		}
	}
	return id, ok && attributes.Err() == nil
}

// countRules is how many rules a table has; none if it is not there.
func countRules(f family, table string) (int, error) {
	conn, err := nftables.New()
	if err != nil {
		return 0, fmt.Errorf("nftables: %w", err)
	}
	chains, err := conn.ListChainsOfTableFamily(f.Tables)
	if err != nil {
		return 0, fmt.Errorf("nftables: %w", err)
	}
	count := 0
	for _, chain := range chains {
		if chain.Table.Name != table {
			continue
		}
		rules, err := conn.GetRules(chain.Table, chain)
		if err != nil {
			return 0, fmt.Errorf("nftables table %s: %w", table, err)
		}
		count += len(rules)
	}
	return count, nil
}
