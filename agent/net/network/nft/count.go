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
func CountRules(table *nftables.Table) (map[string]int, error) {
	counts, err := whole(func() ([]string, error) { return chainsOfRules(table) })
	if errors.Is(err, os.ErrNotExist) {
		return map[string]int{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("rules of table %s: %w", table.Name, err)
	}
	all := map[string]int{}
	for _, chain := range counts {
		all[chain]++
	}
	return all, nil
}

// chainsOfRules has the chain of each rule.
func chainsOfRules(table *nftables.Table) ([]string, error) {
	data, err := about(table)
	if err != nil {
		return nil, err
	}
	replies, err := execute(unix.NFT_MSG_GETRULE, netlink.Dump, data)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, reply := range replies {
		chain, err := chainOf(reply)
		if err != nil {
			return nil, err
		}
		all = append(all, chain)
	}
	return all, nil
}

func chainOf(rule netlink.Message) (chain string, err error) {
	attributes, err := attributesOf(rule)
	if err != nil {
		return "", err
	}
	for attributes.Next() {
		if attributes.Type() == unix.NFTA_RULE_CHAIN {
			chain = attributes.String()
		}
	}
	return chain, attributes.Err()
}
