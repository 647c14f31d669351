package nft

import "github.com/google/nftables"

// DropTable removes a table with all that is in it. One that is not there is no error, and so is a machine without nftables.
func DropTable(family nftables.TableFamily, name string) error {
	conn, err := Open()
	if err == nil {
		conn.DelTable(&nftables.Table{Family: family, Name: name})
		err = conn.Flush()
	}
	return IgnoreMissing("nftables table "+name, err)
}
