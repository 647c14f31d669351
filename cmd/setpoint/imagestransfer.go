package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/agent/host"
	"github.com/setpoint-io/setpoint/internal/durable"
)

const (
	standardStream = "-"
	// passwordBytesMax bounds what is read as a password.
	passwordBytesMax = 64 << 10
)

func newImagesPull() *cobra.Command {
	var output, username, registries string
	var passwordStdin bool
	cmd := &cobra.Command{
		Use: "pull IMAGE...", Short: "Fetch images from their registries, before a pod wants them",
		Long: "Fetch images from their registries, before a pod wants them. An agent that runs with the data directory fetches them, as its own\n" +
			"--registries says; the flag is for when none runs.",
		Example: "  setpoint images pull nginx:1.29\n" +
			"  setpoint images pull registry.example.com/shop/cart:3 --username robot --password-stdin <password",
	}
	registriesFlag(cmd.Flags(), &registries)
	cmd.Flags().StringVar(&username, "username", "", "name for the registry")
	cmd.Flags().BoolVar(&passwordStdin, "password-stdin", false, "read the password for the registry from standard input")
	cmd.Flags().StringVarP(&output, "output", "o", "table", outputUsage)
	check := func(*cobra.Command) error {
		if passwordStdin != (username != "") {
			return usageError{errNoPassword}
		}
		return checkOutput(output)
	}
	cmd = imagesCommand(cmd, check, func(cmd *cobra.Command, images *host.ImageClient, args []string) error {
		auth, err := registryAuth(cmd.InOrStdin(), username, passwordStdin)
		if err != nil {
			return err
		}
		pulled := []host.Image{}
		for _, name := range args {
			line := newPullProgress(cmd.ErrOrStderr())
			image, err := images.Pull(cmd.Context(), name, auth, line.update)
			line.end()
			if err != nil {
				return err
			}
			pulled = append(pulled, image)
		}
		return printMoved(cmd.OutOrStdout(), output, "pulled", pulled)
	})
	return wantsArguments(cmd, "images")
}

func registryAuth(in io.Reader, username string, passwordStdin bool) (host.RegistryAuth, error) {
	if !passwordStdin {
		return host.RegistryAuth{}, nil
	}
	password, err := io.ReadAll(io.LimitReader(in, passwordBytesMax))
	return host.RegistryAuth{Username: username, Password: strings.TrimRight(string(password), "\r\n")}, err
}

// printMoved prints images that came.
func printMoved(w io.Writer, output, done string, moved []host.Image) error {
	return printAs(w, output, moved, func(w io.Writer) error {
		for _, image := range moved {
			fmt.Fprintln(escaped{w}, done, strings.Join(namesOf(image), ", "), shortID(image.ID), mebibytes(int64(image.SizeBytes)))
		}
		return nil
	})
}

// pullProgress shows how far a pull is: on a terminal in place, elsewhere as a line now and then.
type pullProgress struct {
	w        io.Writer
	terminal bool
	shown    time.Time
	any      bool
}

func newPullProgress(w io.Writer) *pullProgress {
	return &pullProgress{w: w, terminal: isTerminal(w), shown: time.Now()}
}

func (p *pullProgress) update(pull host.ImagePull) {
	if !p.terminal && time.Since(p.shown) < logInterval {
		return
	}
	p.shown, p.any = time.Now(), true
	line := pull.Image + ": " + doneOf(pull)
	if p.terminal {
		fmt.Fprintf(p.w, "\r%s\x1b[K", line)
		return
	}
	fmt.Fprintln(p.w, line)
}

// end leaves the line of a terminal.
func (p *pullProgress) end() {
	if p.terminal && p.any {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

func newImagesImport() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "import FILE...", Short: "Load the images of archives: docker-archive or OCI layout, plain or gzip",
		Long: "Load the images of archives, docker-archive or OCI layout as tar, plain or gzip; - is standard input. No collection removes\n" +
			"them, as no registry might have them.",
		Example: "  docker save shop:3 | setpoint images import -",
	}
	cmd = imagesCommand(cmd, outputFlag(cmd, &output), func(cmd *cobra.Command, images *host.ImageClient, args []string) error {
		imported := []host.Image{}
		for _, path := range args {
			some, err := importFile(cmd, images, path)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			imported = append(imported, some...)
		}
		return printMoved(cmd.OutOrStdout(), output, "imported", imported)
	})
	cmd.ValidArgsFunction = nil // files
	return wantsArguments(cmd, "archives")
}

func importFile(cmd *cobra.Command, images *host.ImageClient, path string) ([]host.Image, error) {
	if path == standardStream {
		return images.Import(cmd.Context(), io.NopCloser(cmd.InOrStdin()))
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return images.Import(cmd.Context(), file)
}

func newImagesSave() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "save IMAGE...", Short: "Write images as one archive, for 'setpoint images import' or 'docker load' elsewhere",
		Long: "Write images as one docker-archive. The runtime keeps layers unpacked, so they are packed anew: files, owners, modes and\n" +
			"tags are those of the image, its id and its digests are not. A file is written completely or not at all.",
		Example: "  setpoint images save shop:3 --to shop.tar\n" +
			"  setpoint images save shop:3 --to - | ssh node-2 setpoint images import -",
	}
	cmd.Flags().StringVar(&to, "to", "", "file to write, or - for standard output (required)")
	check := func(cmd *cobra.Command) error {
		switch {
		case to == "":
			return usageError{errNoFile}
		case to == standardStream && isTerminal(cmd.OutOrStdout()):
			return usageError{errToTerminal}
		}
		return nil
	}
	cmd = imagesCommand(cmd, check, func(cmd *cobra.Command, images *host.ImageClient, args []string) error {
		if to == standardStream {
			return images.Save(cmd.Context(), cmd.OutOrStdout(), args...)
		}
		return saveFile(cmd, images, to, args)
	})
	cmd.ValidArgsFunction = completeImages
	return wantsArguments(cmd, "images")
}

var (
	errNoPassword = errors.New("--username and --password-stdin belong together")
	errNoFile     = errors.New("--to must name a file, or - for standard output")
	errToTerminal = errors.New("--to -: an archive is not for a terminal")
)

// saveFile leaves no part of an archive behind. Others may save to the same file at once, so each part has a name of its own.
func saveFile(cmd *cobra.Command, images *host.ImageClient, to string, names []string) error {
	part, err := os.CreateTemp(filepath.Dir(to), ".setpoint-images-")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name()) // nothing is there after the rename
	err = images.Save(cmd.Context(), part, names...)
	if err == nil {
		err = part.Sync()
	}
	if err := errors.Join(err, part.Close()); err != nil {
		return err
	}
	if err := os.Rename(part.Name(), to); err != nil {
		return err
	}
	return durable.SyncFolder(filepath.Dir(to))
}
