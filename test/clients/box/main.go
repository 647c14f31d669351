// Command box is the little that kubectl expects inside a container, as one static
// program without a shell: it goes by the name it is called by.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	if err := run(filepath.Base(os.Args[0]), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "box:", err)
		os.Exit(1)
	}
}

func run(name string, args []string) error {
	switch name {
	case "ask": // a URL once
		return ask(args[0])
	case "burn": // works while the file says "on"
		return burn(args[0])
	case "cat": // files, or standard input
		return cat(args)
	case "echo":
		_, err := fmt.Println(strings.Join(args, " "))
		return err
	case "exit":
		code, err := strconv.Atoi(args[0])
		os.Exit(code)
		return err
	case "knock": // at a URL, until the file says "off"
		return knock(args[0], args[1])
	case "lookup":
		return lookup(args[0], args[1])
	case "ls":
		return list(args[0])
	case "pause": // until SIGTERM
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, syscall.SIGTERM)
		<-ended
		return nil
	case "owners": // of files, and whether they can be written
		return owners(args)
	case "tar": // cf - PATH, or -xmf - -C DIR
		if strings.Contains(args[0], "x") {
			return unpack(os.Stdin, args[len(args)-1])
		}
		return pack(os.Stdout, args[len(args)-1])
	default: // kubectl cp asks `test -d PATH`
		info, err := os.Stat(args[len(args)-1])
		if err == nil && !info.IsDir() {
			err = errors.New("no directory")
		}
		return err
	}
}

func owners(names []string) error {
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		owner := info.Sys().(*syscall.Stat_t)
		fmt.Println(name, owner.Uid, owner.Gid, info.Mode().Perm(), syscall.Access(name, 2) == nil)
	}
	return nil
}

// timeMax is how long a box works that nobody stops: the test that began it may have failed.
const timeMax = 10 * time.Minute

// burn computes something as long as a file begins with "on", and looks at it ten times a second.
func burn(file string) error {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	time.AfterFunc(timeMax, func() { os.Exit(1) })
	for sum := 0; ; {
		text, _ := os.ReadFile(file) // without it there is nothing to do
		on, pause := bytes.HasPrefix(text, []byte("on")), 100*time.Millisecond
		if !on {
			pause = time.Second // an autoscaler must see that it rests, on a slow machine too
		}
		select {
		case <-ended:
			fmt.Println(sum)
			return nil
		case <-time.After(pause):
			for end := time.Now().Add(100 * time.Millisecond); on && time.Now().Before(end); {
				sum++
			}
		}
	}
}

// knock asks for a URL again and again, each time over a new connection, until a file begins with "off", and says how often
// that went wrong.
func knock(url, file string) error {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	asked, wrong := 0, 0
	time.AfterFunc(timeMax, func() { os.Exit(1) })
	for {
		if off, _ := os.ReadFile(file); bytes.HasPrefix(off, []byte("off")) { // without it nobody said so
			fmt.Println("asked", asked, "wrong", wrong)
			return nil
		}
		asked++
		answer, err := client.Get(url)
		if err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
			err = errors.Join(err, answer.Body.Close())
		}
		if err != nil || answer.StatusCode != http.StatusOK {
			wrong++
			fmt.Println("request", asked, "went wrong:", err)
		}
		if asked%100 == 0 {
			fmt.Println("asked", asked)
		}
	}
}

func cat(files []string) error {
	if len(files) == 0 {
		_, err := io.Copy(os.Stdout, os.Stdin)
		return err
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if _, err := os.Stdout.Write(text); err != nil {
			return err
		}
	}
	return nil
}

func list(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		fmt.Println(e.Name())
	}
	return err
}

func pack(to io.Writer, path string) error {
	archive := tar.NewWriter(to)
	err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return packOne(archive, name, entry)
	})
	return errors.Join(err, archive.Close())
}

func packOne(archive *tar.Writer, name string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	header, err := tar.FileInfoHeader(info, "")
	if err != nil {
		return err
	}
	header.Name = strings.TrimPrefix(name, "/")
	if err := archive.WriteHeader(header); err != nil || entry.IsDir() {
		return err
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	_, err = archive.Write(text)
	return err
}

func unpack(from io.Reader, dir string) error {
	archive := tar.NewReader(from)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		path := filepath.Join(dir, header.Name)
		if header.FileInfo().IsDir() {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = writeFile(path, archive)
		}
		if err != nil {
			return err
		}
	}
}

func writeFile(path string, from io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	return errors.Join(err, file.Close())
}
