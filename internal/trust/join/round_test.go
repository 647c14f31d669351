package join

import (
	"errors"
	"testing"
)

// TestNobodyToAsk is an error, and not a final one of no servers.
func TestNobodyToAsk(t *testing.T) {
	if err := round(t.Context(), nil, nil); !errors.Is(err, ErrNoServers) {
		t.Error(err)
	}
}
