package ui

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const pageWidth, pageHeight = 1400, 900 // pixels

// page is the page in a browser.
type page struct {
	t   *testing.T
	ctx context.Context

	thrown *thrown
}

// thrown are the errors of scripts that nothing has caught.
type thrown struct {
	mu    sync.Mutex
	texts []string
}

// openPage opens the page in a browser that ends with the test.
func openPage(t *testing.T, address string) *page {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WindowSize(pageWidth, pageHeight))
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	// A newer Chromium tells of values that the library's types do not have, which nothing here reads.
	ctx, closePage := chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {}))
	t.Cleanup(closePage)
	if err := chromedp.Run(ctx); err != nil { // the browser lives as long as this context
		t.Fatal(err)
	}
	p := &page{t: t, ctx: ctx, thrown: &thrown{}}
	chromedp.ListenTarget(ctx, func(event any) {
		if e, ok := event.(*runtime.EventExceptionThrown); ok {
			p.thrown.add(e.ExceptionDetails.Error())
		}
	})
	p.do(chromedp.Navigate(address))
	return p
}

func (e *thrown) add(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.texts = append(e.texts, text)
}

func (p *page) faults() []string {
	p.thrown.mu.Lock()
	defer p.thrown.mu.Unlock()
	return p.thrown.texts
}

// of is the page for a part of the test.
func (p *page) of(t *testing.T) *page {
	part := *p
	part.t = t
	return &part
}

func (p *page) do(actions ...chromedp.Action) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, viewTimeout)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// visit goes to a view by its address.
func (p *page) visit(hash string) {
	p.t.Helper()
	p.do(chromedp.Evaluate("location.hash = "+quoted(hash), nil))
}

// sees waits until an element says all of these.
func (p *page) sees(selector string, texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		p.eventually(text+" in "+selector, "document.querySelector("+quoted(selector)+")?.textContent.includes("+quoted(text)+")")
	}
}

// dark has the system ask for dark colours, or not.
func (p *page) dark(is bool) {
	p.t.Helper()
	scheme := "light"
	if is {
		scheme = "dark"
	}
	p.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
}

func (p *page) text(selector string) (text string) {
	p.t.Helper()
	p.do(chromedp.Text(selector, &text, chromedp.ByQuery))
	return text
}

// picture keeps what the page looks like, if $SETPOINT_SHOTS names a folder.
func (p *page) picture(name string) {
	p.t.Helper()
	dir := os.Getenv("SETPOINT_SHOTS")
	if dir == "" {
		return
	}
	var png []byte
	p.do(chromedp.CaptureScreenshot(&png))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// quoted is a text as JavaScript writes it.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string
	}
	return string(b)
}
