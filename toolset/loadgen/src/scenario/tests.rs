use serde_json::json;

use super::*;
use crate::random::Random;

fn plan(steps: &Value) -> String {
    json!({"use_cases": [{"name": "shop", "rate": 5.0, "steps": steps}]}).to_string()
}

fn create() -> Value {
    json!({
        "name": "create order", "method": "POST", "path": "/orders", "status": 201, "capture": {"order": "/id"},
        "body": {"customerId": "$customer", "card": "$card", "note": "for $customer",
                 "items": [{"itemId": "$item1", "quantity": "$quantity1"}, {"itemId": "$item2", "quantity": 1}]},
    })
}

fn read() -> Value {
    json!({"name": "read order", "method": "GET", "path": "/orders/$order/items/$item2", "status": 200})
}

fn write_request(step: &Step, values: &[Value]) -> String {
    let mut out = Vec::new();
    step.write("Host: a\r\n", values, &mut out, &mut String::new());
    String::from_utf8(out).unwrap()
}

#[test]
fn template_values_keep_their_json_type() {
    let scenario = Scenario::parse(&plan(&json!([create()]))).unwrap();
    let use_case = &scenario.use_cases[0];
    let values = use_case.draw(&mut Random::new(1));
    let request = write_request(&use_case.steps[0], &values);
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let length = format!("Content-Type: application/json\r\nContent-Length: {}", body.len());
    assert_eq!(head, format!("POST /orders HTTP/1.1\r\nHost: a\r\n{length}"));
    let body: Value = serde_json::from_str(body).unwrap();
    let customer = body["customerId"].as_u64().unwrap();
    assert_eq!(body["note"], format!("for {customer}"));
    assert_eq!(body["card"].as_str().unwrap().len(), 16);
    assert_ne!(body["items"][0]["itemId"], body["items"][1]["itemId"]);
    assert!((1..=5).contains(&body["items"][0]["quantity"].as_u64().unwrap()));
}

#[test]
fn captured_values_fill_later_paths() {
    let scenario = Scenario::parse(&plan(&json!([create(), read()]))).unwrap();
    let use_case = &scenario.use_cases[0];
    let mut values = use_case.draw(&mut Random::new(1));
    for body in ["", "{}", "[]", r#"{"id": null}"#, r#"{"id": "1 HTTP/1.1\r\n"}"#, r#"{"id": {}}"#] {
        assert!(!use_case.steps[0].capture(body.as_bytes(), &mut values), "{body}");
    }
    assert!(use_case.steps[0].capture(br#"{"id": 4711}"#, &mut values));
    let item = use_case.variables.iter().position(|variable| variable.name == "item2").unwrap();
    let path = format!("GET /orders/4711/items/{} HTTP/1.1\r\nHost: a\r\n\r\n", values[item]);
    assert_eq!(write_request(&use_case.steps[1], &values), path);
}

#[test]
fn variables_are_reproducible_with_distinct_items() {
    let steps: Vec<Value> =
        (1..=20).map(|n| json!({"name": "a", "method": "POST", "path": format!("/$item{n}"), "status": 201})).collect();
    let scenario = Scenario::parse(&plan(&steps.into())).unwrap();
    let (mut first, mut second) = (Random::new(3), Random::new(3));
    for _ in 0..200 {
        let values = scenario.use_cases[0].draw(&mut first);
        assert_eq!(values, scenario.use_cases[0].draw(&mut second));
        let mut ids: Vec<u64> = values.iter().map(|value| value.as_u64().unwrap()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 20);
        assert!(ids[0] >= 1 && ids[19] <= 1000);
    }
}

#[test]
fn steps_with_the_same_name_share_an_operation() {
    let text = json!({"use_cases": [
        {"name": "a", "rate": 1, "steps": [create(), read(), read()]},
        {"name": "b", "rate": 1, "steps": [create()]},
    ]});
    let scenario = Scenario::parse(&text.to_string()).unwrap();
    let names: Vec<(usize, &str)> =
        scenario.operations.iter().map(|operation| (operation.use_case, operation.name.as_str())).collect();
    assert_eq!(names, [(0, "create order"), (0, "read order"), (1, "create order")]);
}

#[test]
fn parse_errors_name_use_case_and_step() {
    let step = |change: &str, value: Value| {
        let mut step = read();
        step["path"] = json!("/orders");
        step[change] = value;
        plan(&json!([step]))
    };
    for (text, message) in [
        ("{}".to_owned(), "missing field `use_cases`"),
        (r#"{"use_cases": []}"#.to_owned(), "use_cases is empty"),
        (plan(&json!([])), "use case \"shop\": steps is empty"),
        (plan(&json!([read()])), "use case \"shop\": step \"read order\": $order is neither drawn nor captured"),
        (step("method", json!("HEAD")), "use case \"shop\": step \"read order\": HEAD with status 200"),
        (step("path", json!("/a b")), "use case \"shop\": step \"read order\": path \"/a b\""),
        (step("capture", json!({"card": "/card"})), "use case \"shop\": step \"read order\": capture \"card\""),
        (step("paht", json!("/")), "unknown field `paht`"),
        (plan(&json!([create()])).replace("5.0", "0"), "use case \"shop\": rate 0"),
    ] {
        let error = Scenario::parse(&text).unwrap_err();
        assert!(error.starts_with(message), "{error}");
    }
}
