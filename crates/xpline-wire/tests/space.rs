//! An address space against the plainest one there can be: a page table for every epoch.

use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::*;
use xpline_wire::{AddressSpace, Mapping};

const PAGES: u64 = 24;

proptest! {
    #[test]
    fn every_epoch_is_as_it_was(changes in vec((0..PAGES, 1..8u64, proptest::option::of((0..4u32, 0..9u64))), 1..30)) {
        let mut space = AddressSpace::default();
        let mut tables = vec![HashMap::new()];
        for (epoch, (first, pages, file)) in (1..).zip(changes) {
            let mut table: HashMap<u64, (u32, u64)> = tables.last().unwrap().clone();
            for page in first..first + pages {
                match file {
                    Some((file, start)) => table.insert(page, (file, start + page - first)),
                    None => table.remove(&page),
                };
            }
            let (address, size) = (first << 12, pages << 12);
            match file {
                Some((file, start)) => space.map(Mapping {
                    epoch,
                    address,
                    size,
                    file: Some(file),
                    offset: start << 12,
                    shared: true,
                    executable: false,
                    traced: true,
                }),
                None => space.unmap(epoch, address, size),
            }
            tables.push(table);
        }
        let check = |space: &AddressSpace, epoch: usize| {
            for page in 0..PAGES + 8 {
                let address = (page << 12) + 5;
                let found = space.find(epoch as u64, address);
                let found = found.map(|mapping| (mapping.file.unwrap(), mapping.offset_of(address) >> 12));
                prop_assert_eq!(found, tables[epoch].get(&page).copied(), "epoch {} page {}", epoch, page);
            }
            Ok(())
        };
        for epoch in 0..tables.len() {
            check(&space, epoch)?;
        }
        prop_assert!(space.mappings().is_sorted_by_key(|mapping| mapping.address));
        let half = tables.len() / 2;
        space.forget(half as u64);
        for epoch in half..tables.len() {
            check(&space, epoch)?;
        }
    }
}
