//! Numbers of any size are validated exactly.

use super::takes;

#[test]
fn huge_numbers_are_validated_exactly() {
    for (schema, good, bad) in [
        (
            r#"{"maximum": 100000000000000000000000000000}"#,
            "100000000000000000000000000000",
            "100000000000000000000000000001",
        ),
        (r#"{"minimum": -0.1}"#, "-0.1", "-0.1000000000000000000000000000001"),
        (r#"{"exclusiveMinimum": 1e400}"#, "1.1e400", "1e400"),
        (r#"{"multipleOf": 3}"#, "100000000000000000000000000002", "100000000000000000000000000001"),
        (r#"{"multipleOf": 0.01}"#, "4.02", "4.025"),
        (r#"{"multipleOf": 0.0001}"#, "1e1000000000", "0.00015"),
        (r#"{"multipleOf": 7}"#, "7e999999999999999999999999", "1e999999999999999999999999"),
        (r#"{"multipleOf": 1e300}"#, "3e300", "3e299"),
        (r#"{"type": "integer"}"#, "10.50e1", "100000000000000000000000000001.5"),
        (r#"{"type": "integer"}"#, "-0.0", "1e-1"),
        (
            r#"{"const": 100000000000000000000000000001}"#,
            "100000000000000000000000000001.0",
            "100000000000000000000000000002",
        ),
        (r#"{"enum": [0.1, 0]}"#, "-0e7", "0.10000000000000000001"),
        (r#"{"uniqueItems": true}"#, "[1e2, 1000, -100]", "[1e2, 100]"),
        (r#"{"maximum": 9223372036854775807}"#, "9223372036854775807", "9223372036854775808"),
        (r#"{"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}"#, "1", "1.0"),
    ] {
        assert!(takes(schema, good), "{good} by {schema}");
        assert!(!takes(schema, bad), "{bad} by {schema}");
    }
}

proptest::proptest! {
    #[test]
    fn small_numbers_match_integer_arithmetic(number in -1000_i64..1000, limit in -1000_i64..1000, divisor in 1_i64..50, zeros in 0_usize..5) {
        // The same number in a longer form is compared digit by digit.
        let number_text = format!("{number}.{}e0", "0".repeat(zeros + 1));
        let maximum = format!(r#"{{"maximum": {limit}}}"#);
        let multiple = format!(r#"{{"multipleOf": {divisor}}}"#);
        proptest::prop_assert_eq!(takes(&maximum, &number_text), number <= limit);
        proptest::prop_assert_eq!(takes(&maximum, &number.to_string()), number <= limit);
        proptest::prop_assert_eq!(takes(&multiple, &number_text), number % divisor == 0);
    }
}
