# Serves json and plaintext with one process per connection, slowly enough to leave CPU time to the test. The argument
# selects a fault.
use strict;
use IO::Socket::INET;
use POSIX qw(strftime);

my $behaviour = shift // 'good';
$| = 1;
print "fake: $behaviour\n";
if ($behaviour eq 'exits-at-once') { print STDERR "fake: cannot read its configuration\n"; exit 3 }
if ($behaviour eq 'out-of-memory') { my @all; push @all, 'x' x 1_000_000 while 1 }
if ($behaviour eq 'never-listens') { $SIG{TERM} = sub { exit 0 }; sleep 600 }

my $server = IO::Socket::INET->new(
    LocalAddr => $ENV{HOST}, LocalPort => $ENV{PORT}, Listen => 1024, ReuseAddr => 1, Proto => 'tcp') or die "bind: $!";
$SIG{CHLD} = 'IGNORE';
$SIG{TERM} = sub { exit 0 };
my ($parent, $served) = ($$, 0);
my %bodies = ('/json' => ['application/json', '{"message":"Hello, World!"}'], '/plaintext' => ['text/plain', 'Hello, World!']);

while (1) {
    my $line = $server->accept or next;
    my $pid = fork;
    if ($pid) { close $line; next }
    my $data = '';
    while (sysread($line, $data, 262144, length $data)) {
        my $out = '';
        while ((my $end = index $data, "\r\n\r\n") >= 0) {
            my $head = substr $data, 0, $end;
            substr($data, 0, $end + 4) = '';
            my ($method, $path) = $head =~ m{\A([A-Z]+) (?:http://[^/ ]+)?(/[^ ?]*)[^ ]* HTTP/1\.1\r\n};
            my $status = !$method || $head !~ /^host:/im ? '400 Bad Request' : !$bodies{$path} ? '404 Not Found'
                : $method !~ /^(GET|HEAD)$/ ? '405 Method Not Allowed' : '200 OK';
            my ($type, $body) = $status =~ /^200/ ? @{$bodies{$path}} : ('text/plain', $status);
            $out .= "HTTP/1.1 $status\r\nServer: fake\r\nDate: " . strftime('%a, %d %b %Y %H:%M:%S GMT', gmtime)
                . "\r\nContent-Type: $type\r\nContent-Length: " . length($body) . "\r\n\r\n" . ($method eq 'HEAD' ? '' : $body);
            kill 'KILL', $parent if $behaviour eq 'dies-under-load' && ++$served > 200;
            if ($head =~ /^connection:\s*close/im || $status =~ /^400/) { syswrite $line, $out; exit 0 }
        }
        exit 0 if length $data > 65536;
        select undef, undef, undef, 0.002;
        my $at = 0;
        while ($at < length $out) { my $n = syswrite($line, $out, length($out) - $at, $at); last unless $n; $at += $n }
    }
    exit 0;
}
