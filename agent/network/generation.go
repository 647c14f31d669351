package network

import (
	"fmt"

	"github.com/setpoint-io/setpoint/agent/network/nft"
)

// countRules is how many rules a table has; none if it is not there.
func countRules(f family, table string) (int, error) {
	conn, err := nft.Open()
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
