// Command nnp stands in for upstream's nonewprivs in the images of critest: it is installed with the setuid bit and says
// as whom it runs.
package main

import (
	"fmt"
	"os"
)

func main() { fmt.Printf("Effective uid: %d\n", os.Geteuid()) }
