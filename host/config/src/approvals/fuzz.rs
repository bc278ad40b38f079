//! Files of approvals of any text.

use super::{ApprovalEntry, ApprovalFileJson, FormerApproval};
use crate::approver::ApprovalRequest;
use crate::discover::{PluginKind, PluginOrigin};

/// Any text. What is read is the same when it is written and read again, and holds for what it was given for,
/// and for nothing else.
pub fn approval_file(text: &str) {
    let Ok(content) = serde_json::from_str::<ApprovalFileJson>(text) else { return };
    let written = serde_json::to_string_pretty(&content).expect("what was read can be written");
    let again: ApprovalFileJson =
        serde_json::from_str(&written).expect("what was written can be read");
    assert_eq!(again, content, "written as:\n{written}");
    content.approvals.iter().for_each(check);
}

fn check(approved: &ApprovalEntry) {
    // What a plugin's skills were is known by their digest alone, and no files are made for it.
    let without = &ApprovalEntry { skills: None, ..approved.clone() };
    let (of_skills, approved) = (approved, without);
    let same = ApprovalRequest {
        plugin: approved.plugin.clone(),
        kind: PluginKind::Wasm,
        origin: PluginOrigin::Config,
        source: String::new(),
        named_in: approved.named_in.clone(),
        capabilities: approved.requested.clone(),
        warnings: Vec::new(),
        command: approved.command.clone(),
        arguments: Vec::new(),
        component: approved.component.clone(),
        manifest: approved.manifest.clone(),
        skills: None,
        confinement: None,
    };
    assert_eq!(approved.changes(&same), []);
    assert_eq!(of_skills.changes(&same).is_empty(), of_skills.skills.is_none());
    let others = [
        ApprovalRequest { component: other(&same.component), ..same.clone() },
        ApprovalRequest { manifest: other(&same.manifest), ..same.clone() },
        ApprovalRequest {
            command: match &same.command {
                Some(_) => None,
                None => Some(Default::default()),
            },
            ..same.clone()
        },
    ];
    for request in others {
        assert_ne!(approved.changes(&request), [], "{request:?}");
    }
    let former =
        FormerApproval { requested: approved.requested.clone(), granted: approved.granted.clone() };
    for (capability, values) in &approved.requested {
        let mut more = same.clone();
        let added = format!("{}x", values.iter().max_by_key(|value| value.len()).map_or("", |v| v));
        more.capabilities.entry(capability.clone()).or_default().push(added.clone());
        assert_ne!(approved.changes(&more), [], "{more:?}");
        assert_eq!(former.added(&more), [(capability.clone(), added)]);
        if !values.is_empty() {
            let mut less = same.clone();
            less.capabilities.remove(capability);
            assert_ne!(approved.changes(&less), [], "{less:?}");
        }
    }
    // What the plugin does not request any more it is not granted, whatever was.
    let kept = former.kept(&ApprovalRequest { capabilities: Default::default(), ..same });
    assert!(kept.values().all(Vec::is_empty), "{kept:?}");
}

fn other(digest: &Option<String>) -> Option<String> {
    digest.as_ref().map_or_else(|| Some("0".into()), |digest| Some(format!("{digest}0")))
}
