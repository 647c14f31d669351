package table

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// annotationPrefix is that of the annotations that most charts use.
	annotationPrefix = "nginx.ingress.kubernetes.io/"
	// DefaultConnectTimeout and DefaultReadTimeout are until a backend takes a connection, and until it begins to answer.
	DefaultConnectTimeout = 5 * time.Second
	DefaultReadTimeout    = 60 * time.Second
	timeoutMax            = time.Hour
	sourcesMax            = 1000
)

// Options are what annotations say of an Ingress.
type Options struct {
	// Protocol, if not empty, is the backends'.
	Protocol Protocol
	// RedirectTLS sends requests without TLS to the same address with it; ForceTLS does so also for hosts without a certificate here.
	RedirectTLS, ForceTLS bool
	// Redirect, if not empty, is where every request is sent, with RedirectCode.
	Redirect     string
	RedirectCode int
	// Rewrite, if not empty, is the path that the backend gets; with Patterns, paths are regular expressions, and $1 is what matched.
	Rewrite  string
	Patterns bool
	// ConnectTimeout and ReadTimeout are 1 s to an hour.
	ConnectTimeout, ReadTimeout time.Duration
	// BodyBytesMax is the largest body that is passed on; 0: any.
	BodyBytesMax int64
	// Sources are who may ask; nil: everybody. An empty list: nobody.
	Sources []netip.Prefix
}

// annotation reads one annotation into options.
type annotation func(o *Options, value string) error

// annotations are those that are honoured; any other of the prefix is a Problem.
var annotations = map[string]annotation{
	"rewrite-target": func(o *Options, v string) error {
		o.Rewrite = v
		o.Patterns = o.Patterns || strings.Contains(v, "$")
		return nil
	},
	"use-regex":              boolean(func(o *Options, on bool) { o.Patterns = o.Patterns || on }),
	"ssl-redirect":           boolean(func(o *Options, on bool) { o.RedirectTLS = on }),
	"force-ssl-redirect":     boolean(func(o *Options, on bool) { o.ForceTLS = on }),
	"proxy-connect-timeout":  seconds(func(o *Options) *time.Duration { return &o.ConnectTimeout }),
	"proxy-read-timeout":     seconds(func(o *Options) *time.Duration { return &o.ReadTimeout }),
	"proxy-send-timeout":     seconds(func(*Options) *time.Duration { return new(time.Duration) }),
	"proxy-body-size":        bodySize,
	"permanent-redirect":     redirect(http.StatusMovedPermanently),
	"temporal-redirect":      redirect(http.StatusFound),
	"whitelist-source-range": sources,
	"allowlist-source-range": sources,
	"backend-protocol":       backendProtocol,
}

// closes are the annotations without which an Ingress must not be served: who may ask is not known.
var closes = map[string]bool{"whitelist-source-range": true, "allowlist-source-range": true}

// options reads the annotations of an Ingress, in the order of their names.
func (b *builder) options(i *networkingv1.Ingress) Options {
	o := Options{ConnectTimeout: DefaultConnectTimeout, ReadTimeout: DefaultReadTimeout, RedirectTLS: true}
	for _, name := range slices.Sorted(maps.Keys(i.Annotations)) {
		short, ours := strings.CutPrefix(name, annotationPrefix)
		if !ours {
			continue
		}
		read, known := annotations[short]
		if !known {
			b.problem(i, "AnnotationNotHonoured", "nothing acts on the annotation %s", name)
			continue
		}
		if err := read(&o, i.Annotations[name]); err != nil {
			b.problem(i, "InvalidAnnotation", "%s: %v", name, err)
			if closes[short] {
				o.Sources = []netip.Prefix{}
			}
		}
	}
	return o
}

func boolean(set func(*Options, bool)) annotation {
	return func(o *Options, v string) error {
		on, err := strconv.ParseBool(v)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", v)
		}
		set(o, on)
		return nil
	}
}

func seconds(of func(*Options) *time.Duration) annotation {
	return func(o *Options, v string) error {
		n, err := strconv.Atoi(strings.TrimSuffix(v, "s"))
		if err != nil || n < 1 || time.Duration(n) > timeoutMax/time.Second {
			return fmt.Errorf("%q is no number of seconds from 1 to %d", v, timeoutMax/time.Second)
		}
		*of(o) = time.Duration(n) * time.Second
		return nil
	}
}

// bodySize takes nginx's units, 8m, and Kubernetes', 8Mi.
func bodySize(o *Options, v string) error {
	q, err := resource.ParseQuantity(nginxUnits.Replace(v))
	if err != nil || q.Sign() < 0 || q.Value() == math.MaxInt64 {
		return fmt.Errorf("%q is no size", v)
	}
	o.BodyBytesMax = q.Value()
	return nil
}

var nginxUnits = strings.NewReplacer("Ki", "Ki", "Mi", "Mi", "Gi", "Gi", "k", "Ki", "K", "Ki", "m", "Mi", "M", "Mi", "g", "Gi", "G", "Gi")

func redirect(code int) annotation {
	return func(o *Options, v string) error {
		target, err := url.Parse(v)
		if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" {
			return fmt.Errorf("%q is no address of a page", v)
		}
		o.Redirect, o.RedirectCode = v, code
		return nil
	}
}

var errTooManySources = fmt.Errorf("more than %d ranges", sourcesMax)

func sources(o *Options, v string) error {
	parts := strings.Split(v, ",")
	if len(parts) > sourcesMax {
		return errTooManySources
	}
	allowed := []netip.Prefix{}
	for _, part := range parts {
		prefix, err := parseRange(strings.TrimSpace(part))
		if err != nil {
			return fmt.Errorf("%q is neither an address nor a range", part)
		}
		allowed = append(allowed, prefix)
	}
	o.Sources = allowed
	return nil
}

func parseRange(s string) (netip.Prefix, error) {
	if at, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(at, at.BitLen()), nil
	}
	return netip.ParsePrefix(s)
}

var errProtocol = errors.New("want HTTP, HTTPS, GRPC or GRPCS")

func backendProtocol(o *Options, v string) error {
	switch strings.ToUpper(v) {
	case "HTTP":
		o.Protocol = HTTP
	case "HTTPS", "GRPCS":
		o.Protocol = HTTPS
	case "GRPC":
		o.Protocol = H2C
	default:
		return errProtocol
	}
	return nil
}

// Allows tells whether a client at the address may ask.
func (o *Options) Allows(client netip.Addr) bool {
	if o.Sources == nil {
		return true
	}
	for _, p := range o.Sources {
		if p.Contains(client.Unmap()) {
			return true
		}
	}
	return false
}
