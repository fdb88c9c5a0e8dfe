//! A task in Markdown: the text is the goal; lists below `## Criteria` and `## Decisions` are the rest.
//!
//! Never: Markdown read by hand. What is a heading, a list or code, the parser says.

use std::ops::Range;

use iudex_core::{Decision, Task};
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::refusal::Refusal;

/// What the parser is in the middle of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Goal,
    Criteria,
    Decisions,
}

/// One list item: its own text and that of the items below it.
#[derive(Default)]
struct Item {
    text: Option<Range<usize>>,
    below: Vec<Item>,
}

/// A part of the file that belongs to one heading.
struct Section {
    part: Part,
    /// Where its heading starts.
    start: usize,
    items: Vec<Item>,
}

/// Reads a task; the goal may come out empty.
pub(super) fn read(name: &str, text: &str) -> Result<Task, Refusal> {
    let sections = sections(name, text)?;
    let mut task = Task::default();
    let mut goal = String::new();
    for (index, section) in sections.iter().enumerate() {
        let end = sections.get(index + 1).map_or(text.len(), |next| next.start);
        match section.part {
            Part::Goal => goal.push_str(text.get(section.start..end).unwrap_or_default()),
            Part::Criteria => task.criteria.extend(section.items.iter().map(|item| criterion(text, item))),
            Part::Decisions => task.decisions.extend(section.items.iter().map(|item| decision(text, item))),
        }
        let empty = section.items.iter().any(|item| own_text(text, item).is_empty());
        if section.part != Part::Goal && (section.items.is_empty() || empty) {
            return Err(Refusal::usage(
                format!("{name}:{}: this section has no list, or an empty item in it", line(text, section.start)),
                "write its entries as a list, a line each, beginning with `- `",
            ));
        }
    }
    goal.trim().clone_into(&mut task.goal);
    Ok(task)
}

fn sections(name: &str, text: &str) -> Result<Vec<Section>, Refusal> {
    let mut sections = vec![Section { part: Part::Goal, start: 0, items: Vec::new() }];
    // The items that are open, outermost first.
    let mut open: Vec<Item> = Vec::new();
    let mut heading: Option<(HeadingLevel, usize, String)> = None;
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TASKLISTS).into_offset_iter() {
        match event {
            // A heading inside of a list item or a quotation is text of it.
            Event::Start(Tag::Heading { level, .. }) if open.is_empty() => {
                heading = Some((level, range.start, String::new()));
            }
            Event::End(TagEnd::Heading(_)) => {
                if let Some((level, start, title)) = heading.take() {
                    begin_section(&mut sections, level, start, &title);
                }
            }
            Event::Text(words) | Event::Code(words) if heading.is_some() => {
                if let Some((_, _, title)) = &mut heading {
                    title.push_str(&words);
                }
            }
            _ if heading.is_some() => {}
            _ => {
                let Some(section) = sections.last_mut().filter(|section| section.part != Part::Goal) else { continue };
                if !take(&event, &range, section, &mut open) {
                    return Err(Refusal::usage(
                        format!(
                            "{name}:{}: this text below the heading is no entry of a list",
                            line(text, range.start)
                        ),
                        "make it an entry (`- …`), or move it above the heading: there it is part of the goal",
                    ));
                }
            }
        }
    }
    Ok(sections)
}

/// A heading of the first two levels opens a part; deeper ones belong to the part that is open.
fn begin_section(sections: &mut Vec<Section>, level: HeadingLevel, start: usize, title: &str) {
    let part = match title.trim().trim_end_matches(':').to_lowercase().as_str() {
        "criteria" | "success criteria" | "acceptance criteria" if level >= HeadingLevel::H2 => Part::Criteria,
        "decisions" if level >= HeadingLevel::H2 => Part::Decisions,
        _ if level > HeadingLevel::H2 => return,
        _ => Part::Goal,
    };
    sections.push(Section { part, start, items: Vec::new() });
}

/// Takes one event below `## Criteria` or `## Decisions`. False for text outside of a list.
fn take(event: &Event<'_>, range: &Range<usize>, section: &mut Section, open: &mut Vec<Item>) -> bool {
    match event {
        Event::Start(Tag::List(_)) | Event::End(TagEnd::List(_)) | Event::TaskListMarker(_) | Event::Rule => {}
        Event::Start(Tag::Item) => open.push(Item::default()),
        Event::End(TagEnd::Item) => {
            if let Some(item) = open.pop() {
                open.last_mut().map_or(&mut section.items, |outer| &mut outer.below).push(item);
            }
        }
        _ => {
            let Some(item) = open.last_mut() else { return false };
            // Text that follows after a list within the item belongs to what is above it; it would be out of order
            // as a range, so it becomes an entry of its own.
            if item.below.is_empty() {
                let text = item.text.get_or_insert(range.clone());
                text.start = text.start.min(range.start);
                text.end = text.end.max(range.end);
            } else {
                item.below.push(Item { text: Some(range.clone()), below: Vec::new() });
            }
        }
    }
    true
}

/// The text of an item as it is written, on one line unless it holds code of several lines.
fn own_text(text: &str, item: &Item) -> String {
    let written = item.text.clone().and_then(|range| text.get(range)).unwrap_or_default().trim();
    if written.contains("```") { written.to_owned() } else { written.split_whitespace().collect::<Vec<_>>().join(" ") }
}

/// An item and everything below it as one sentence: `the API: returns 404; logs the error`.
fn criterion(text: &str, item: &Item) -> String {
    let own = own_text(text, item);
    if item.below.is_empty() {
        return own;
    }
    let below: Vec<String> = item.below.iter().map(|item| criterion(text, item)).collect();
    format!("{}: {}", own.trim_end_matches(':'), below.join("; "))
}

/// `choice (rejected: a; b)`, or a choice with the rejected ones as a list below it.
fn decision(text: &str, item: &Item) -> Decision {
    let own = own_text(text, item);
    let (choice, mut rejected) = match own.to_ascii_lowercase().rfind("(rejected:") {
        Some(start) if own.trim_end_matches('.').ends_with(')') => {
            let inner = own.get(start + "(rejected:".len()..).unwrap_or_default().trim_end_matches('.');
            let inner = inner.strip_suffix(')').unwrap_or(inner);
            (own.get(..start).unwrap_or_default().trim().to_owned(), alternatives(inner))
        }
        _ => (own.trim_end_matches(':').to_owned(), Vec::new()),
    };
    for below in &item.below {
        let below_text = criterion(text, below);
        match below_text.get(.."rejected:".len()) {
            Some(start) if start.eq_ignore_ascii_case("rejected:") => {
                rejected.extend(alternatives(below_text.get("rejected:".len()..).unwrap_or_default()));
            }
            _ => rejected.push(below_text),
        }
    }
    Decision { choice, rejected }
}

fn alternatives(text: &str) -> Vec<String> {
    text.split(';').map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

fn line(text: &str, offset: usize) -> usize {
    text.get(..offset).unwrap_or(text).matches('\n').count() + 1
}
