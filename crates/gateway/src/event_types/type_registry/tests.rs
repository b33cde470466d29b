//! What a registry accepts, alone and while a configuration is being changed.

use super::super::type_rules::IdRule;
use super::*;
use crate::event_types::text_rule::TextRule;

fn named(names: &[&str]) -> GatewayTypes {
    let named = names.iter().map(|name| (TypeName::new(name).unwrap(), TypeRules::default())).collect();
    GatewayTypes { named, ..GatewayTypes::default() }
}

#[test]
fn aggregate_results_cannot_be_posted() {
    let results = [(TypeName::new("a.hits").unwrap(), TypeRules::default())].into();
    let types = GatewayTypes { open: Some(TypeRules::default()), results, ..named(&["a"]) };
    let table = TypeRegistry::new(types, &Arc::default());
    assert_eq!(table.find("a.hits").unwrap_err().code, ErrorCode::UnknownType);
    assert_eq!(table.find("a.other").unwrap().name.as_str(), "a.other");
}

#[test]
fn only_configured_types_exist_without_wildcard() {
    let table = TypeRegistry::new(named(&["a"]), &Arc::default());
    assert_eq!(table.find("a").unwrap().name.as_str(), "a");
    assert_eq!(table.find("b").unwrap_err().code, ErrorCode::UnknownType);
    assert_eq!(table.find("A b").unwrap_err().code, ErrorCode::UnknownType);
}

#[test]
fn reload_accepts_only_types_with_equal_rules() {
    let open = |names: &[&str]| GatewayTypes { open: Some(TypeRules::default()), ..named(names) };
    for (before, after, taken, changing, unknown) in [
        (named(&["a", "b"]), named(&["b", "c"]), vec!["b"], vec!["a", "c"], vec!["d"]),
        (open(&["a"]), named(&["c"]), vec!["c"], vec!["a", "d"], vec![]),
        (named(&["a"]), open(&["c"]), vec!["a"], vec!["c", "d"], vec![]),
        (open(&["a"]), open(&["c"]), vec!["a", "c", "d"], vec![], vec![]),
    ] {
        let both = TypeRegistry::changing(before.clone(), after.clone(), &Arc::default());
        let code = |name: &&str| both.find(name).err().map(|problem| problem.code);
        assert!(taken.iter().all(|name| code(name).is_none()), "{before:?} {after:?}");
        assert!(changing.iter().all(|name| code(name) == Some(ErrorCode::NotReady)), "{before:?} {after:?}");
        assert!(unknown.iter().all(|name| code(name) == Some(ErrorCode::UnknownType)), "{before:?} {after:?}");
    }
}

#[test]
fn rules_are_compared_by_their_effect_on_events() {
    let id = IdRule::Pointer("/id".parse().unwrap());
    let texts = TextRule { repair: true, ..TextRule::default() };
    let others = [
        TypeRules { id, ..TypeRules::default() },
        TypeRules { id: IdRule::Content, ..TypeRules::default() },
        TypeRules { time: Some("/at".parse().unwrap()), ..TypeRules::default() },
        TypeRules { texts, ..TypeRules::default() },
        TypeRules { ack_memory: true, ..TypeRules::default() },
        TypeRules { ack_stored: true, ..TypeRules::default() },
    ];
    for rules in others {
        assert!(rules.are_same_as(&rules.clone()) && !rules.are_same_as(&TypeRules::default()), "{rules:?}");
    }
}

#[test]
fn wildcard_types_are_bounded_apart_from_configured_ones() {
    let types = GatewayTypes { open: Some(TypeRules::default()), ..named(&["a", "b"]) };
    let table = TypeRegistry::new(types, &Arc::default());
    for number in 0..OPEN_TYPES_MAX {
        assert!(table.find(&format!("t{number}")).is_ok(), "{number}");
    }
    assert_eq!(table.find("more").unwrap_err().code, ErrorCode::TooManyTypes);
    assert!(table.find("t0").is_ok() && table.find("a").is_ok());
}
