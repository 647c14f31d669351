package network

import (
	"github.com/google/nftables"

	"github.com/setpoint-io/setpoint/agent/net/network/nft"
)

// countRules is how many rules a table has; none if it is not there.
func countRules(f family, table string) (sum int, err error) {
	counts, err := nft.CountRules(&nftables.Table{Family: f.Tables, Name: table})
	for _, count := range counts {
		sum += count
	}
	return sum, err
}
