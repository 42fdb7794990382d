use super::*;

fn plan(arguments: &str) -> Result<Plan, String> {
    match parse(arguments.split_whitespace())? {
        Asked::Load(plan) => Ok(*plan),
        other => Err(format!("{other:?}")),
    }
}

#[test]
fn the_options_make_a_plan() {
    let plan = plan(
        "--connections 64 --threads 2 --cpus 1,4-5 --rate 500 --arrivals uniform --duration 2.5 --spin 10 --seed 9 \
         --expect-length 3-5 http://127.0.0.1:81/json",
    )
    .unwrap();
    assert_eq!((plan.connections, plan.threads, plan.depth), (64, 2, 1));
    assert_eq!(plan.cpus, [1, 4, 5]);
    assert_eq!((plan.rate, plan.arrivals, plan.seed), (Some(500.0), Process::Uniform, 9));
    assert_eq!((plan.duration, plan.spin), (Some(2_500_000_000), 10_000));
    assert_eq!(plan.address, "127.0.0.1:81".parse().unwrap());
    assert_eq!(plan.requests[0].bytes, b"GET /json HTTP/1.1\r\nHost: 127.0.0.1:81\r\n\r\n");
    assert_eq!(plan.requests[0].rule.length, Some((3, 5)));
}

#[test]
fn headers_keep_their_order_and_their_host() {
    let arguments =
        ["--header", "Accept: a, b", "--header", "Host: tfb-server", "http://127.0.0.1:1", "http://127.0.0.1:1/b?c"];
    let Ok(Asked::Load(plan)) = parse(arguments) else { panic!("no plan") };
    assert_eq!(plan.requests[0].bytes, b"GET / HTTP/1.1\r\nAccept: a, b\r\nHost: tfb-server\r\n\r\n");
    assert_eq!(plan.requests[1].target, "/b?c");
}

#[test]
fn what_does_not_fit_is_named() {
    for (arguments, message) in [
        ("", "a URL is missing; --help shows how it is used"),
        ("--rate 0 http://127.0.0.1/", "--rate 0: more than 0"),
        ("--rate nan http://127.0.0.1/", "--rate nan: more than 0"),
        ("--rat 5 http://127.0.0.1/", "--rat: unknown"),
        ("--depth 0 http://127.0.0.1/", "--depth 0: 1 or more"),
        ("--threads 2 http://127.0.0.1/", "--connections 1: fewer than --threads 2"),
        ("https://127.0.0.1/", "https://127.0.0.1/: a URL with http:// is expected"),
        ("http://127.0.0.1/ http://127.0.0.2/", "http://127.0.0.2/: all URLs must be of one server"),
        ("--header nothing http://127.0.0.1/", "--header \"nothing\""),
        ("--sample-rate 0.5 http://127.0.0.1/", "--sample-rate and --sample-file"),
        ("--requests /nowhere http://127.0.0.1/", "/nowhere: "),
        ("--expect-length 5-3 http://127.0.0.1/", "--expect-length 5-3: an empty range"),
        ("--duration -1 http://127.0.0.1/", "--duration -1: seconds between"),
        ("--answers a http://127.0.0.1/", "--answers and --wait-for-go are of a scenario"),
        ("--scenario /nowhere http://127.0.0.1/", "--scenario /nowhere: "),
        ("--scenario /nowhere http://127.0.0.1/orders", "http://127.0.0.1/orders: a scenario takes the URL"),
        ("--scenario /nowhere --rate 5 http://127.0.0.1/", "--rate is not for a scenario"),
        ("--scenario /nowhere --expect-body a http://127.0.0.1/", "--expect-… is not for a scenario"),
        ("--scenario /nowhere --threads 2 http://127.0.0.1/", "--connections 1: fewer than --threads 2"),
    ] {
        let error = plan(arguments).unwrap_err();
        assert!(error.starts_with(message), "{arguments}: {error}");
    }
}

#[test]
fn every_option_of_the_usage_is_known() {
    let options =
        USAGE.lines().filter_map(|line| line.trim().strip_prefix("--")).map(|line| line.split(' ').next().unwrap());
    for name in options {
        let error = plan(&format!("--{name}")).unwrap_err();
        assert!(!error.contains("unknown"), "{name}: {error}");
        assert!(error.contains("missing"), "{name}: {error}");
    }
}
