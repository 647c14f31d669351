package access

import (
	"testing"

	"github.com/setpoint-io/setpoint/apiserver/auth/authconfig"
)

// TestOwnIssuer: tokens name it, and others ask for its keys there, so it is an https URL.
func TestOwnIssuer(t *testing.T) {
	for issuer, good := range map[string]bool{"": true, "https://example.com": true, "x": false, "http://example.com": false, "https://": false} {
		if err := Validate(authconfig.Config{OwnIssuer: issuer}, ""); (err == nil) != good {
			t.Errorf("%q: %v", issuer, err)
		}
	}
}
