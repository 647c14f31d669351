// Package web is the page of a cluster that `setpoint ui` serves: HTML, CSS and modules, which a browser reads as they lie here.
//
// It owns what is shown and how. app.js is the frame, one module each are the views (cluster.js, loops.js, object.js, whatif.js),
// lessons.js has the buttons for clusters to learn on, streams.js with worker.js follows lists, api.js asks, and dom.js makes elements.
// There is no build step, no library and no font. cmd/setpoint/ui serves it and decides what it may ask.
//
// Promises: all files together are at most BytesMax; nothing is fetched from elsewhere; text from the cluster is never read as HTML or
// as a program: there is no inline script, and elements are made by textContent alone.
//
// Tested as text by this package, through the command by the script ui, and in a browser by test/ui.
package web
