package userconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

const (
	// lifeDefault is a day's work. The API signs nothing shorter than lifeMin.
	lifeDefault = 8 * time.Hour
	lifeMin     = 10 * time.Minute
	lifeMax     = 365 * 24 * time.Hour
	// groupsMax and groupBytesMax bound what a certificate says.
	groupsMax     = 50
	groupBytesMax = 253
	// reserved begins the names of Kubernetes' and the cluster's own users and groups.
	reserved = "system:"
	// administrator is whose kubeconfig `cluster init` writes.
	administrator = "admin"
)

// Errors of what somebody asks for.
var (
	ErrName   = errors.New("no name for a user")
	ErrGroup  = errors.New("no group for a user")
	ErrLife   = fmt.Errorf("--expires must be %s to %s", lifeMin, lifeMax)
	errMaster = errors.New("the group " + trust.GroupMasters + " is given only by the CA's key: run this as root on a server, whose trust folder " +
		"has it, or with --kubeconfig of that folder")
)

// User is who a kubeconfig is for.
type User struct {
	Name   string
	Groups []string
	Life   time.Duration
}

// Validate refuses names that are somebody else's or could not be revoked.
func (u *User) Validate() error {
	if strings.HasPrefix(u.Name, reserved) || u.Name == administrator {
		return fmt.Errorf("%w: %q is the cluster's own", ErrName, u.Name)
	}
	if err := (revocation.Target{Kind: revocation.User, Name: u.Name}).Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrName, err)
	}
	if len(u.Groups) > groupsMax {
		return fmt.Errorf("%w: more than %d", ErrGroup, groupsMax)
	}
	for _, group := range u.Groups {
		if err := validateGroup(group); err != nil {
			return err
		}
	}
	if u.Life < lifeMin || u.Life > lifeMax {
		return ErrLife
	}
	return nil
}

func validateGroup(group string) error {
	switch {
	case group == trust.GroupMasters:
		return nil
	case group == "" || len(group) > groupBytesMax || strings.ContainsFunc(group, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("%w: %q", ErrGroup, group)
	case strings.HasPrefix(group, reserved) || trust.ReservedGroup(group):
		return fmt.Errorf("%w: %q is the cluster's own", ErrGroup, group)
	}
	return nil
}

// isMaster reports whether he may do everything.
func (u *User) isMaster() bool { return slices.Contains(u.Groups, trust.GroupMasters) }
