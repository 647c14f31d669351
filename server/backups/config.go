package backups

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/robfig/cron/v3"
	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/server/backups/place"
	"github.com/setpoint-io/setpoint/server/backups/sealed"
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
	// To is where the backups are: a folder, or s3://BUCKET/PREFIX, which S3 says how to reach.
	To string
	S3 place.S3
	// EncryptTo is a file of age recipients; empty: backups are not encrypted as a whole.
	EncryptTo string
	// Keep is how many of this server's stay, 1 to KeepMax.
	Keep int
}

// Flags are the flags of a server.
func (c *Config) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Schedule, "backup-schedule", "", "when this server makes a backup: '0 3 * * *', @daily, '@every 6h'; empty: never")
	flags.StringVar(&c.To, "backup-to", "", "where the backups of --backup-schedule go: a folder, best on another disk, or s3://BUCKET/PREFIX")
	flags.IntVar(&c.Keep, "backup-keep", KeepDefault, "how many of this server's backups stay there")
	flags.StringVar(&c.EncryptTo, "backup-encrypt-to", "", "file with age recipients (age1...), a line each: backups are encrypted to them (default: as they are in the store)")
	c.S3.Flags(flags, "backup-")
}

var (
	errTogether = errors.New("--backup-schedule and --backup-to go together")
	errAlone    = errors.New("--backup-encrypt-to and --backup-s3-* are for --backup-schedule and --backup-to")
	errKeep     = fmt.Errorf("--backup-keep must be 1 to %d", KeepMax)
)

// Validate says what is wrong with the flags.
func (c *Config) Validate() error {
	switch {
	case c.Schedule == "" && c.To == "" && c.EncryptTo == "" && c.S3 == place.S3{}:
		return nil
	case c.Schedule == "" && c.To == "":
		return errAlone
	case c.Schedule == "" || c.To == "":
		return errTogether
	case c.Keep < 1 || c.Keep > KeepMax:
		return errKeep
	}
	if _, err := c.schedule(); err != nil {
		return err
	}
	if _, err := c.recipients(); err != nil {
		return err
	}
	return c.checkPlace()
}

// checkPlace says what is wrong with --backup-to. A bucket is asked for nothing: it may be away for a while.
func (c *Config) checkPlace() error {
	if !place.IsBucket(c.To) {
		if info, err := os.Stat(c.To); err != nil || !info.IsDir() {
			return fmt.Errorf("--backup-to %s: no such folder: make it, or mount it", c.To)
		}
	}
	if _, err := place.At(c.To, c.S3); err != nil {
		return fmt.Errorf("--backup-to: %w", err)
	}
	return nil
}

// recipients are those of EncryptTo, none if it is empty.
func (c *Config) recipients() ([]age.Recipient, error) {
	if c.EncryptTo == "" {
		return nil, nil
	}
	recipients, err := sealed.Recipients(c.EncryptTo)
	if err != nil {
		return nil, fmt.Errorf("--backup-encrypt-to: %w: a recipient in each line, as age-keygen -y prints it", err)
	}
	return recipients, nil
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
