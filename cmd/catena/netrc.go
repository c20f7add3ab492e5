package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/catena-http/catena/route"
)

// login is a user and a password.
type login struct{ user, password string }

// netrc is what a .netrc file says, in its order.
type netrc []netrcEntry

type netrcEntry struct {
	machine string // in its canonical form; "" is default
	login
}

// find returns the login for host: of user, where that is not "", or else of the
// first entry that counts. An entry without a user is anybody's, after those of the
// user. Only with fallback does "default" count.
func (n netrc) find(host, user string, fallback bool) (login, bool) {
	host = canonicalHost(host)
	var anybody *netrcEntry
	for i := range n {
		e := &n[i]
		switch {
		case e.machine == "" && !fallback, e.machine != "" && e.machine != host:
		case user == "", user == e.user:
			return e.login, true
		case e.user == "" && anybody == nil:
			anybody = e
		}
	}
	if anybody == nil {
		return login{}, false
	}
	return login{user, anybody.password}, true
}

func canonicalHost(host string) string {
	if canonical, err := route.CanonicalHost(host); err == nil {
		return canonical
	}
	return strings.ToLower(host)
}

// parseNetrc reads a .netrc file: entries of "machine NAME" or "default", followed by
// login, password and account, each with a value. Between keywords # begins a comment.
// A value in quotes may have white space and, after a backslash, quotes, backslashes
// and n, r and t. A macdef is passed over, down to an empty line. What is none of this
// is an error, which shows nothing of the file: it may be a piece of a password.
func parseNetrc(text string) (netrc, error) {
	p := netrcParser{text: text, line: 1}
	for {
		p.skipSpace()
		switch {
		case p.text == "":
			return p.entries, nil
		case p.text[0] == '#':
			p.skipLine()
			continue
		}
		if err := p.keyword(); err != nil {
			return nil, fmt.Errorf("line %d: %w", p.line, err)
		}
	}
}

type netrcParser struct {
	text    string // what is left
	line    int
	entries netrc
	given   map[string]bool // the keywords of the entry under way
}

func (p *netrcParser) keyword() error {
	word := strings.ToLower(p.bare())
	switch word {
	case "default":
		p.begin("")
		return nil
	case "macdef":
		return p.skipMacro()
	case "machine", "login", "password", "account":
	default:
		return errors.New("a keyword is expected: machine, default, login, password, account or macdef (a value with a space needs quotes)")
	}
	value, err := p.value()
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", word, err)
	case word == "machine" && value == "":
		return errors.New("machine: the name is empty")
	case word == "machine":
		p.begin(canonicalHost(value))
		return nil
	case len(p.entries) == 0:
		return fmt.Errorf("%s: there is no machine before it", word)
	case p.given[word]:
		return fmt.Errorf("%s: it is given twice", word)
	}
	p.given[word] = true
	e := &p.entries[len(p.entries)-1]
	switch word {
	case "login":
		e.user = value
	case "password":
		e.password = value
	}
	return nil
}

func (p *netrcParser) begin(machine string) {
	p.entries = append(p.entries, netrcEntry{machine: machine})
	p.given = map[string]bool{}
}

const netrcSpace = " \t\r\n"

func (p *netrcParser) skipSpace() {
	rest := strings.TrimLeft(p.text, netrcSpace)
	p.line += strings.Count(p.text[:len(p.text)-len(rest)], "\n")
	p.text = rest
}

func (p *netrcParser) skipLine() {
	end := strings.IndexByte(p.text, '\n')
	if end < 0 {
		end = len(p.text)
	}
	p.text = p.text[end:]
}

// skipMacro passes over the rest of the line and all lines before an empty one.
func (p *netrcParser) skipMacro() error {
	for p.skipLine(); p.text != ""; p.skipLine() {
		p.text = p.text[1:]
		p.line++
		if strings.HasPrefix(p.text, "\n") || strings.HasPrefix(p.text, "\r\n") {
			break
		}
	}
	return nil
}

// bare takes what comes before white space.
func (p *netrcParser) bare() string {
	end := strings.IndexAny(p.text, netrcSpace)
	if end < 0 {
		end = len(p.text)
	}
	word := p.text[:end]
	p.text = p.text[end:]
	return word
}

func (p *netrcParser) value() (string, error) {
	p.skipSpace()
	switch {
	case p.text == "":
		return "", errors.New("the file ends before its value")
	case p.text[0] != '"':
		return p.bare(), nil
	}
	var value strings.Builder
	for i := 1; i < len(p.text); i++ {
		switch c := p.text[i]; c {
		case '"':
			p.text = p.text[i+1:]
			if p.text != "" && !strings.Contains(netrcSpace, p.text[:1]) {
				return "", errors.New("something follows the closing quote")
			}
			return value.String(), nil
		case '\n':
			return "", errors.New("the closing quote is missing")
		case '\\':
			if i++; i < len(p.text) {
				value.WriteByte(unescaped(p.text[i]))
			}
		default:
			value.WriteByte(c)
		}
	}
	return "", errors.New("the closing quote is missing")
}

func unescaped(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// maxNetrc is how many bytes a file may have.
const maxNetrc = 1 << 20

// readNetrc reads the .netrc that the options ask for, if they do; -u makes it
// useless. Others than the user being able to read it is worth a warning.
func (c *command) readNetrc() (netrc, error) {
	o := c.options
	if o.user != "" || !o.netrc && !o.netrcOptional && o.netrcFile == "" {
		return nil, nil
	}
	name, err := o.netrcName()
	if err != nil {
		return nil, fail(exitReadError, err)
	}
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) && o.netrcOptional {
		return nil, nil
	}
	if err != nil {
		return nil, fail(exitReadError, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxNetrc+1))
	if err == nil && len(text) > maxNetrc {
		err = fmt.Errorf("it has more than %d bytes", maxNetrc)
	}
	var entries netrc
	if err == nil {
		entries, err = parseNetrc(string(text))
	}
	if err != nil {
		return nil, fail(exitReadError, fmt.Errorf("%s: %w", name, err))
	}
	if info, err := f.Stat(); err == nil && othersRead(info) && !o.silent {
		fmt.Fprintf(c.stderr, "catena: warning: others can read %s: chmod 600 keeps the passwords in it from them\n", name)
	}
	return entries, nil
}

// netrcName is the file of --netrc-file, of the environment, or in the user's folder.
func (o *options) netrcName() (string, error) {
	for _, name := range []string{o.netrcFile, os.Getenv("NETRC")} {
		if name != "" {
			return name, nil
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the .netrc: %w", err)
	}
	name := filepath.Join(home, ".netrc")
	if _, err := os.Stat(name); err != nil && runtime.GOOS == "windows" {
		name = filepath.Join(home, "_netrc")
	}
	return name, nil
}

func othersRead(info os.FileInfo) bool {
	return runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0
}
