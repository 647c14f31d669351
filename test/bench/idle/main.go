// Command idle is what the pods of bench's crowd run: it does nothing until it is ended, or ends at once if it is asked anything, as
// their probes do. node.sh packs it as an image.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if len(os.Args) > 1 {
		return
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	<-end
}
