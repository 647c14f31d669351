package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"
)

// lookupMax is how long a name is asked for.
const lookupMax = 10 * time.Second

// lookup asks as the resolv.conf of the container says: for addresses, SRV, CNAME, TXT or PTR.
func lookup(kind, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), lookupMax)
	defer cancel()
	resolver := &net.Resolver{PreferGo: true}
	var found []string
	var err error
	switch kind {
	case "SRV":
		var all []*net.SRV
		_, all, err = resolver.LookupSRV(ctx, "", "", name)
		for _, s := range all {
			found = append(found, fmt.Sprintf("%s:%d", s.Target, s.Port))
		}
	case "CNAME":
		var one string
		one, err = resolver.LookupCNAME(ctx, name)
		found = []string{one}
	case "TXT":
		found, err = resolver.LookupTXT(ctx, name)
	case "PTR":
		found, err = resolver.LookupAddr(ctx, name)
	default:
		found, err = resolver.LookupHost(ctx, name)
	}
	slices.Sort(found)
	for _, f := range found {
		fmt.Println(f)
	}
	return err
}
