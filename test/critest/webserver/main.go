// Command webserver stands in for nginx in the images of critest: it answers on a port, writes its process id where nginx
// does, and calls itself a master process. `webserver PORT`; the programs that look for it know it as nginx.
package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const (
	pidFile     = "/var/run/nginx.pid"
	title       = "nginx: master process nginx"
	headerLimit = 10 * time.Second
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "webserver:", err)
		os.Exit(1)
	}
}

// run starts itself anew under the title, which is what /proc/PID/cmdline shows.
func run() error {
	if os.Args[0] != title {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		return syscall.Exec(self, append([]string{title}, os.Args[1:]...), os.Environ())
	}
	if err := os.MkdirAll(filepath.Dir(pidFile), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(pidFile, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
		return err
	}
	fmt.Println("httpd and nginx, or what stands in for them, on port", os.Args[1]) // a case looks for the name in the log
	server := &http.Server{Addr: ":" + os.Args[1], ReadHeaderTimeout: headerLimit, Handler: http.HandlerFunc(page)}
	return server.ListenAndServe()
}

func page(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "<h1>It works!</h1>") }
