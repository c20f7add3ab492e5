package catena_test

import (
	"fmt"
	"slices"
	"strings"
)

// wireRow is a line of the table: dimensions first, and what came of it.
type wireRow [7]string

// The columns of a wireRow that are dimensions.
const (
	credentialsColumn = 1
	protocolColumn    = 2
	hostColumn        = 3
)

// wireTable prints outcomes, with one line for cases that fare alike.
func wireTable(outcomes map[wireCase]wireOutcome) string {
	var rows []wireRow
	for _, c := range wireCases() {
		rows = append(rows, c.row(outcomes[c]))
	}
	for _, column := range []int{hostColumn, protocolColumn, credentialsColumn} {
		rows = joinRows(rows, column)
	}
	var b strings.Builder
	b.WriteString(`# Every type of proxy on the wire

What comes of a call: the status of its response or the kind of its error, the names that are
resolved by us, and what the proxy is told, one message after the other. HOST and PORT are the
origin's. The credentials "right" and "wrong" stand in the proxy's URL, "right answer" and "wrong
answer" are those of an authenticator; "none" has none for a proxy that wants some.

Wherever the result is 200, the origin saw one request, with the origin's credentials and
without the proxy's; elsewhere it saw nothing.

| proxy | credentials | protocol | host | result | we resolve | the proxy is told |
|---|---|---|---|---|---|---|
`)
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row[:], " | "))
	}
	return b.String()
}

// joinRows makes one row of those that differ in one column only.
func joinRows(rows []wireRow, column int) []wireRow {
	var joined []wireRow
	for _, row := range rows {
		i := slices.IndexFunc(joined, func(other wireRow) bool {
			other[column] = row[column]
			return other == row
		})
		if i < 0 {
			joined = append(joined, row)
			continue
		}
		joined[i][column] += ", " + row[column]
	}
	return joined
}

func (c wireCase) row(o wireOutcome) wireRow {
	general := strings.NewReplacer(
		c.hostField(), "HOST", ":"+c.port(), ":PORT",
		fmt.Sprintf(", Authorization %s", originSecret), ", the origin's credentials",
		fmt.Sprintf(", Cookie %s", cookieSecret), "",
	).Replace
	host := map[string]string{origin: "name", wireIPv4: "IPv4", wireIPv6: "IPv6"}[c.host]
	resolved := strings.NewReplacer(wireProxyHost, "the proxy", origin, "the origin").Replace(strings.Join(o.Lookups, ", "))
	return wireRow{
		c.proxy.String(), string(c.credentials), c.protocol, host,
		o.Result, resolved, general(strings.Join(o.Proxy, "; ")),
	}
}
