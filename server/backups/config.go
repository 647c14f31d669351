package backups

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/spf13/pflag"
)

const (
	// KeepDefault and KeepMax are how many backups of one server stay.
	KeepDefault = 14
	KeepMax     = 1000
	// everyMin is the shortest time between two backups.
	everyMin = time.Minute
)

// Config are the flags. The zero value makes no backups.
type Config struct {
	// Schedule is a cron expression with five fields, by the machine's time zone, or @daily, @every 6h and the like.
	Schedule string
	// Folder is where the backups are.
	Folder string
	// Keep is how many of this server's stay, 1 to KeepMax.
	Keep int
}

// Flags are the flags of a server.
func (c *Config) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Schedule, "backup-schedule", "", "when this server makes a backup: '0 3 * * *', @daily, '@every 6h'; empty: never")
	flags.StringVar(&c.Folder, "backup-to", "", "the folder for the backups of --backup-schedule, best on another disk")
	flags.IntVar(&c.Keep, "backup-keep", KeepDefault, "how many of this server's backups stay in that folder")
}

var (
	errTogether = errors.New("--backup-schedule and --backup-to go together")
	errKeep     = fmt.Errorf("--backup-keep must be 1 to %d", KeepMax)
)

// Validate says what is wrong with the flags.
func (c *Config) Validate() error {
	switch {
	case c.Schedule == "" && c.Folder == "":
		return nil
	case c.Schedule == "" || c.Folder == "":
		return errTogether
	case c.Keep < 1 || c.Keep > KeepMax:
		return errKeep
	}
	if _, err := c.schedule(); err != nil {
		return err
	}
	if info, err := os.Stat(c.Folder); err != nil || !info.IsDir() {
		return fmt.Errorf("--backup-to %s: no such folder: make it, or mount it", c.Folder)
	}
	return nil
}

// schedule reads the expression. A time zone in it is refused, as in CronJobs.
func (c *Config) schedule() (cron.Schedule, error) {
	wrong := func(why string) error {
		return fmt.Errorf("--backup-schedule %q: %s: five fields, such as '0 3 * * *', or @daily, '@every 6h'", c.Schedule, why)
	}
	if strings.Contains(c.Schedule, "TZ") {
		return nil, wrong("it goes by the machine's time zone")
	}
	schedule, err := cron.ParseStandard(c.Schedule)
	if err != nil {
		return nil, wrong(err.Error())
	}
	first := schedule.Next(time.Now())
	if first.IsZero() {
		return nil, wrong("there is no such day")
	}
	if schedule.Next(first).Sub(first) < everyMin {
		return nil, wrong("more than one a minute")
	}
	return schedule, nil
}
