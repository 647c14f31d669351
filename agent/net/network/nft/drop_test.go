package nft

import "testing"

// TestDropTable: what is not there need not be removed.
func TestDropTable(t *testing.T) {
	needRoot(t)
	conn := opened(t, bytesMax)
	conn.ReplaceTable(testTable)
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := DropTable(testTable.Family, testTable.Name); err != nil {
			t.Error(err)
		}
		if handle, err := Handle(testTable); handle != 0 || err != nil {
			t.Errorf("the table is there: %d, %v", handle, err)
		}
	}
}
