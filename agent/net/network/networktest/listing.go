package networktest

import (
	"strings"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// listable are the kinds of data of which nft knows the length, by its numbers. As part of a key any other ends nft, and whoever has
// it list the rules, as firewalld does.
var listable = []nftables.SetDatatype{
	nftables.TypeVerdict, nftables.TypeIPAddr, nftables.TypeIP6Addr, nftables.TypeInetProto, nftables.TypeInetService, nftables.TypeMark,
	nftables.TypeIFName,
}

// Listable fails the test if nft would end abnormally listing our tables of this network namespace: a key has a part of a kind without
// length, or is what a map led to. It says how many rules it has seen.
func Listable(t testing.TB) (rules int) {
	t.Helper()
	conn, err := nftables.New()
	check(t, err)
	tables, err := conn.ListTables()
	check(t, err)
	for _, table := range tables {
		if !strings.HasPrefix(table.Name, "setpoint-") {
			continue
		}
		rules += listableTable(t, conn, table)
	}
	return rules
}

func listableTable(t testing.TB, conn *nftables.Conn, table *nftables.Table) (count int) {
	t.Helper()
	sets, err := conn.GetSets(table)
	check(t, err)
	lengths := map[string]uint32{}
	for _, set := range sets {
		lengths[set.Name] = set.KeyType.Bytes
		listableType(t, table.Name+" "+set.Name, set.KeyType)
		listableType(t, table.Name+" "+set.Name, set.DataType)
	}
	chains, err := conn.ListChainsOfTableFamily(table.Family)
	check(t, err)
	for _, chain := range chains {
		if chain.Table.Name != table.Name {
			continue
		}
		all, err := conn.GetRules(table, chain)
		check(t, err)
		for _, rule := range all {
			listableRule(t, table.Name+" "+chain.Name, rule.Exprs, lengths)
			count++
		}
	}
	return count
}

func listableType(t testing.TB, where string, kind nftables.SetDatatype) {
	t.Helper()
	known := map[uint32]bool{0: true}
	for _, l := range listable {
		known[l.GetNFTMagic()] = true
	}
	for parts := kind.GetNFTMagic(); parts != 0; parts >>= nftables.SetConcatTypeBits {
		if !known[parts&nftables.SetConcatTypeMask] {
			t.Errorf("%s: nft does not know how long kind %d is", where, parts&nftables.SetConcatTypeMask)
		}
	}
}

const registerBytes = 4

// listableRule follows what maps lead to through the registers.
func listableRule(t testing.TB, where string, rule []expr.Any, lengths map[string]uint32) {
	t.Helper()
	mapped := map[uint32]bool{}
	key := func(from, bytes uint32) {
		for register := from; register < from+(bytes+registerBytes-1)/registerBytes; register++ {
			if mapped[register] {
				t.Errorf("%s: what a map leads to is part of a key", where)
				return
			}
		}
	}
	for _, e := range rule {
		switch e := e.(type) {
		case *expr.Lookup:
			key(number(e.SourceRegister), lengths[e.SetName])
			if e.IsDestRegSet && e.DestRegister != unix.NFT_REG_VERDICT {
				mapped[number(e.DestRegister)] = true
			}
		case *expr.Dynset:
			key(number(e.SrcRegKey), lengths[e.SetName])
			key(number(e.SrcRegData), registerBytes)
		case *expr.Bitwise: // its result has the length of what it is made of
			mapped[number(e.DestRegister)] = mapped[number(e.SourceRegister)]
		case *expr.Payload:
			mapped[number(e.DestRegister)] = false
		case *expr.Meta:
			mapped[number(e.Register)] = false
		case *expr.Numgen:
			mapped[number(e.Register)] = false
		case *expr.Immediate:
			mapped[number(e.Register)] = false
		}
	}
}

// number is that of a register of 4 bytes; the first four are of 16.
func number(register uint32) uint32 {
	const large = 4
	if register >= unix.NFT_REG32_00 {
		return register
	}
	return unix.NFT_REG32_00 + (register-unix.NFT_REG_1)*large
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
