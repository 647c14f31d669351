package nft

import (
	"errors"
	"fmt"
	"os"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// CountRules is how many rules each chain of a table has; chains without any are missing, and so are those of a table that is not there.
// It is one question, however many chains there are.
func (c *Conn) CountRules(table *nftables.Table) (map[string]int, error) {
	counts, err := whole(func() ([]string, error) { return chainsOfRules(table) })
	if errors.Is(err, os.ErrNotExist) {
		return map[string]int{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("nftables table %s: %w", table.Name, err)
	}
	all := map[string]int{}
	for _, chain := range counts {
		all[chain]++
	}
	return all, nil
}

// chainsOfRules has the chain of each rule.
func chainsOfRules(table *nftables.Table) ([]string, error) {
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	name, err := netlink.MarshalAttributes([]netlink.Attribute{{Type: unix.NFTA_RULE_TABLE, Data: append([]byte(table.Name), 0)}})
	if err != nil {
		return nil, err
	}
	replies, err := conn.Execute(netlink.Message{
		Header: netlink.Header{
			Type: netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETRULE), Flags: netlink.Request | netlink.Dump,
		},
		Data: append([]byte{byte(table.Family), unix.NFNETLINK_V0, 0, 0}, name...),
	})
	if err != nil {
		return nil, err
	}
	var all []string
	for _, reply := range replies {
		if len(reply.Data) < familyHeaderBytes {
			continue
		}
		attributes, err := netlink.NewAttributeDecoder(reply.Data[familyHeaderBytes:])
		if err != nil {
			return nil, err
		}
		for attributes.Next() {
			if attributes.Type() == unix.NFTA_RULE_CHAIN {
				all = append(all, attributes.String())
			}
		}
		if err := attributes.Err(); err != nil {
			return nil, err
		}
	}
	return all, nil
}
