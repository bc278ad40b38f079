//! Tables of what was measured: aligned for a terminal, or in Markdown for `docs/performance.md`, with the argument
//! `--markdown`.

use std::fmt;

/// A table: what its rows are about, its columns, and its rows.
pub(crate) struct Table {
    title: String,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows. The first column says what was done, and the others have figures.
    pub(crate) fn new<'a>(title: &str, columns: impl IntoIterator<Item = &'a str>) -> Self {
        let columns = columns.into_iter().map(str::to_owned).collect();
        Self { title: title.into(), columns, rows: Vec::new() }
    }

    /// Adds a row with so many cells as there are columns.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().collect();
        assert_eq!(cells.len(), self.columns.len(), "{cells:?}");
        self.rows.push(cells);
    }

    /// Prints it to standard output, if it has rows.
    pub(crate) fn print(&self) {
        if self.rows.is_empty() {
            return;
        }
        match std::env::args().any(|argument| argument == "--markdown") {
            true => println!("{}", Markdown(self)),
            false => println!("{self}"),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = || [&self.columns].into_iter().chain(&self.rows);
        let width = |column: usize| {
            lines().map(|cells| cells[column].chars().count()).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        writeln!(f, "{}", self.title)?;
        for cells in lines() {
            let cells = cells.iter().zip(&widths).enumerate();
            let line: Vec<String> = cells
                .map(|(at, (cell, width))| match at {
                    0 => format!("{cell:<width$}"),
                    _ => format!("{cell:>width$}"),
                })
                .collect();
            writeln!(f, "  {}", line.join("  ").trim_end())?;
        }
        Ok(())
    }
}

/// A table as a page has it.
struct Markdown<'a>(&'a Table);

impl fmt::Display for Markdown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Table { title, columns, rows } = self.0;
        let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
        writeln!(f, "{title}:\n\n{}", line(columns))?;
        let rules: Vec<&str> =
            (0..columns.len()).map(|at| if at == 0 { "---" } else { "---:" }).collect();
        writeln!(f, "|{}|", rules.join("|"))?;
        rows.iter().try_for_each(|cells| writeln!(f, "{}", line(cells)))
    }
}
