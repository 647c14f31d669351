// Package ui drives the page of `setpoint ui` in Debian's Chromium (chromedp), on a cluster of `setpoint dev` with simulated nodes: what
// each view shows is asked of the page as a person would read it, after something was done to the cluster. It runs with `make ui-test`,
// needs the package chromium, and leaves pictures of the views in $SETPOINT_SHOTS. What no
// cluster shows each time is asked of the page's modules alone (modules_test.go), and more events than a small machine makes come from a
// server of the test (flood_test.go), which logs how the page kept up. The Go module is its own, so that the product's has no
// browser in it.
package ui
