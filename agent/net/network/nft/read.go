package nft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

const (
	// listTriesMax is how often the kernel is asked for a list. One that changes while it is read may lack parts.
	listTriesMax = 10
	// familyHeaderBytes come before the attributes of each message of netfilter: family, version, and two bytes of a resource's number.
	familyHeaderBytes = 4
	// tableHandleAttribute is NFTA_TABLE_HANDLE of linux/netfilter/nf_tables.h.
	tableHandleAttribute = 4
)

// ListTablesOfFamily lists the tables.
func (c *Conn) ListTablesOfFamily(family nftables.TableFamily) ([]*nftables.Table, error) {
	return whole(func() ([]*nftables.Table, error) { return c.Conn.ListTablesOfFamily(family) })
}

// ListChainsOfTableFamily lists the chains of all tables.
func (c *Conn) ListChainsOfTableFamily(family nftables.TableFamily) ([]*nftables.Chain, error) {
	return whole(func() ([]*nftables.Chain, error) { return c.Conn.ListChainsOfTableFamily(family) })
}

// GetRules lists the rules of a chain.
func (c *Conn) GetRules(table *nftables.Table, chain *nftables.Chain) ([]*nftables.Rule, error) {
	return whole(func() ([]*nftables.Rule, error) { return c.Conn.GetRules(table, chain) })
}

// GetSetElements lists the elements of a set.
func (c *Conn) GetSetElements(set *nftables.Set) ([]nftables.SetElement, error) {
	return whole(func() ([]nftables.SetElement, error) { return c.Conn.GetSetElements(set) })
}

// whole reads a list again that changed meanwhile; the last one counts if it always does.
func whole[T any](list func() ([]T, error)) (all []T, err error) {
	for range listTriesMax {
		before, unknown := Generation()
		if all, err = list(); err != nil || unknown != nil {
			return all, err
		}
		if now, unknown := Generation(); unknown != nil || now == before {
			return all, nil
		}
	}
	return all, nil
}

// Generation is how often anybody has changed nftables in this network namespace.
func Generation() (uint32, error) {
	attributes, err := ask(unix.NFT_MSG_GETGEN, make([]byte, familyHeaderBytes))
	if err != nil {
		return 0, err
	}
	for attributes.Next() {
		if attributes.Type() == unix.NFTA_GEN_ID {
			return attributes.Uint32(), nil
		}
	}
	return 0, errors.Join(errNoGeneration, attributes.Err())
}

var errNoGeneration = errors.New("nftables tells no generation")

// Handle is the number of a table; each that is made has another one. 0: there is no such table.
func Handle(table *nftables.Table) (uint64, error) {
	data, err := about(table)
	if err != nil {
		return 0, err
	}
	attributes, err := ask(unix.NFT_MSG_GETTABLE, data)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for attributes.Next() {
		if attributes.Type() == tableHandleAttribute {
			return attributes.Uint64(), nil
		}
	}
	return 0, attributes.Err()
}

// about is what a question about a table says: the attribute with the table's name is the first one of tables and of rules.
func about(table *nftables.Table) ([]byte, error) {
	name, err := netlink.MarshalAttributes([]netlink.Attribute{{Type: unix.NFTA_TABLE_NAME, Data: append([]byte(table.Name), 0)}})
	return append([]byte{byte(table.Family), unix.NFNETLINK_V0, 0, 0}, name...), err
}

// ask sends one question and returns the attributes of the answer.
func ask(message uint16, data []byte) (*netlink.AttributeDecoder, error) {
	replies, err := execute(message, 0, data)
	if err != nil {
		return nil, err
	}
	if len(replies) == 0 {
		return nil, errNoAnswer
	}
	return attributesOf(replies[0])
}

// execute sends one question and returns all answers. The connection is the question's own.
func execute(message uint16, flags netlink.HeaderFlags, data []byte) ([]netlink.Message, error) {
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return nil, fmt.Errorf("nftables: %w", err)
	}
	defer conn.Close()
	replies, err := conn.Execute(netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | message), Flags: netlink.Request | flags},
		Data:   data,
	})
	if err != nil {
		return nil, fmt.Errorf("nftables: %w", err)
	}
	return replies, nil
}

// attributesOf are those of one answer. Numbers of nftables are in network order.
func attributesOf(reply netlink.Message) (*netlink.AttributeDecoder, error) {
	if len(reply.Data) < familyHeaderBytes {
		return nil, errNoAnswer
	}
	attributes, err := netlink.NewAttributeDecoder(reply.Data[familyHeaderBytes:])
	if err != nil {
		return nil, fmt.Errorf("nftables: %w", err)
	}
	attributes.ByteOrder = binary.BigEndian
	return attributes, nil
}

var errNoAnswer = errors.New("nftables answers nothing")

// IgnoreMissing: a kernel without what is asked for has nothing of ours in it.
func IgnoreMissing(what string, err error) error {
	for _, missing := range []error{os.ErrNotExist, unix.EPROTONOSUPPORT, unix.EOPNOTSUPP, unix.EAFNOSUPPORT} {
		if errors.Is(err, missing) {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
