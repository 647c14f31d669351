package trust

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/setpoint-io/setpoint/internal/clip"
)

// ErrReservedName says that a name is the cluster's own.
var ErrReservedName = errors.New("this name is a server's or the API's own, and no node's")

// nameBytesMax is how much of a name stands in an error: more than any node's has.
const nameBytesMax = 256

// JudgeNodeName says whether a node may have a name, whichever way it joins: by a token, a CertificateSigningRequest or as part of a
// server. It is a DNS subdomain of at most 253 bytes, whose labels have at most 63, and no address (ErrBadRequest); and neither a name
// of the API nor one of the servers (ErrReservedName).
func JudgeNodeName(node string, servers []Server) error {
	problems := validation.IsDNS1123Subdomain(node)
	for label := range strings.SplitSeq(node, ".") {
		if len(label) > validation.DNS1123LabelMaxLength {
			problems = append(problems, fmt.Sprintf("must have no more than %d bytes between two dots", validation.DNS1123LabelMaxLength))
			break
		}
	}
	if net.ParseIP(node) != nil {
		problems = append(problems, "must be no address")
	}
	if len(problems) > 0 {
		return fmt.Errorf("%w: node name %q: %s", ErrBadRequest, clip.Text(node, nameBytesMax), strings.Join(problems, "; "))
	}
	isOfServer := func(s Server) bool { return slices.Contains(s.Names(), node) }
	if slices.Contains(apiNames, node) || slices.ContainsFunc(servers, isOfServer) {
		return fmt.Errorf("node name %q: %w", node, ErrReservedName)
	}
	return nil
}

// ValidateNodeName is JudgeNodeName for who does not know the servers.
func ValidateNodeName(node string) error { return JudgeNodeName(node, nil) }
