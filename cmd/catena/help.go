package main

import (
	"bytes"
	"fmt"
	"io"

	"github.com/catena-http/catena"
)

func writeHelp(w io.Writer) {
	var b bytes.Buffer
	fmt.Fprintf(&b, `catena %s: call HTTP servers, in the manner of curl, and see what happens on the way

  catena [options] URL...
  catena demo               a tour of the library on servers of its own
  catena help               this page

Redirects are followed unless --no-follow says otherwise. Times are in seconds, or have a unit.
Several URLs share connections. A switch --NAME is turned off by --no-NAME.

`, catena.Version)
	for _, f := range flags {
		name := "--" + f.long
		if f.short != 0 {
			name = fmt.Sprintf("-%c, %s", f.short, name)
		} else {
			name = "    " + name
		}
		if f.value != "" {
			name += " " + f.value
		}
		if len(name) > 30 {
			fmt.Fprintf(&b, "  %s\n  %30s", name, "")
		} else {
			fmt.Fprintf(&b, "  %-30s", name)
		}
		fmt.Fprintf(&b, "  %s\n", f.help)
	}
	b.WriteString("\nExit codes, curl's where curl has one; of several URLs, the first failure's:\n\n")
	for _, e := range exitCodes {
		fmt.Fprintf(&b, "  %3d  %s\n", e.code, e.means)
	}
	w.Write(b.Bytes())
}
